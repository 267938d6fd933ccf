package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
)

// answer is any answer, as a phone reads it.
type answer struct {
	Kind, Epoch, Revision, BaseRevision string
	Offset, Total                       int
	Sessions, Upserts                   []json.RawMessage
	RemovedKeys, Order                  []string
	NextOffset                          *int
	PageOffsets                         *[]int
}

// catalog is a Catalog over rows a test changes.
type catalog struct {
	*Catalog
	rows       []Row
	err        error
	generation atomic.Uint64
	reads      atomic.Int32
	before     func(ctx context.Context, read int32) // runs inside each read
}

func newCatalog(t testing.TB, rows ...Row) *catalog {
	c := &catalog{rows: rows}
	c.Catalog = New(Options{
		Read: func(ctx context.Context) ([]Row, error) {
			rows, err := c.rows, c.err
			if n := c.reads.Add(1); c.before != nil {
				c.before(ctx, n)
			}
			return rows, err
		},
		Generation: c.generation.Load,
	})
	t.Cleanup(c.Close)
	return c
}

func (c *catalog) sync(t testing.TB, r Request) (answer, int) {
	t.Helper()
	text, err := c.Sync(t.Context(), r)
	if err != nil {
		t.Fatalf("Sync(%+v): %v", r, err)
	}
	return parse(t, text), len(text)
}

func parse(t testing.TB, text []byte) (a answer) {
	t.Helper()
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(text) > 65536 {
		t.Fatalf("an answer of %d bytes", len(text))
	}
	return a
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	if got := codes.Of(err); got != code {
		t.Errorf("code %q (%v), want %q", got, err, code)
	}
}

// sized is a row of exactly n bytes.
func sized(key string, n int) Row {
	text := `{"key":"` + key + `","title":"`
	return Row{key, []byte(text + strings.Repeat("x", n-len(text)-2) + `"}`)}
}

func sizedRows(n, size int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = sized(fmt.Sprint("k", i), size)
	}
	return rows
}

func base(a answer) Request { return Request{Base: &Base{a.Epoch, a.Revision}} }

func at(a answer, off int) Request { return Request{Page: &Page{a.Epoch, a.Revision, off}} }

func TestPageVectors(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-02", "SYNC-06")
	c := newCatalog(t, sizedRows(200, 1000)...)
	if got := envelope(200, 0); got != 160 {
		t.Errorf("envelope %d, want 160", got)
	}
	var offsets []int
	a, _ := c.sync(t, Request{})
	rows := len(a.Sessions)
	for ; a.NextOffset != nil; rows += len(a.Sessions) {
		offsets = append(offsets, *a.NextOffset)
		a, _ = c.sync(t, at(a, *a.NextOffset))
	}
	if d := cmp.Diff([]int{65, 130, 195}, offsets); d != "" || rows != 200 {
		t.Errorf("%d rows, continuations (-want +got):\n%s", rows, d)
	}
	a, _ = c.sync(t, Request{PageIndex: true})
	if d := cmp.Diff(&[]int{61, 126, 191}, a.PageOffsets); d != "" || len(a.Sessions) != 61 || *a.NextOffset != 61 {
		t.Errorf("indexed: %d rows, offsets (-want +got):\n%s", len(a.Sessions), d)
	}
	for i, off := range *a.PageOffsets {
		b, _ := c.sync(t, at(a, off))
		next := -1
		if b.NextOffset != nil {
			next = *b.NextOffset
		}
		if want := append(*a.PageOffsets, -1)[i+1]; next != want {
			t.Errorf("page at %d leads to %d, want %d", off, next, want)
		}
	}
	if c.reads.Load() != 2 {
		t.Errorf("%d reads: a continuation must not read", c.reads.Load())
	}

	c = newCatalog(t, sized("big", maxRow), sized("a", 1000), sized("b", 1000))
	plain, _ := c.Sync(t.Context(), Request{})
	indexed, err := c.Sync(t.Context(), Request{PageIndex: true})
	if err != nil || string(plain) != string(indexed) || len(parse(t, plain).Sessions) != 1 {
		t.Errorf("a first row that fills the page: %v, same %v", err, string(plain) == string(indexed))
	}
}

func TestPageIndexOfOnePage(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, sizedRows(3, 100)...)
	a, _ := c.sync(t, Request{PageIndex: true})
	if a.PageOffsets == nil || len(*a.PageOffsets) != 0 || a.NextOffset != nil {
		t.Errorf("everything fits: %+v", a)
	}
	if a, _ = c.sync(t, Request{}); a.PageOffsets != nil {
		t.Error("offsets nobody asked for")
	}
	// 13 bytes short of the limit there is no room for the 17 of an empty index.
	c = newCatalog(t, sized("a", 60000), sized("b", maxAnswer-envelope(2, 0)-60000-1-13+1))
	if a, _ = c.sync(t, Request{PageIndex: true}); a.PageOffsets != nil || len(a.Sessions) != 2 {
		t.Errorf("no room for the index: %v, %d rows", a.PageOffsets, len(a.Sessions))
	}
	c = newCatalog(t)
	if a, n := c.sync(t, Request{}); a.Total != 0 || a.NextOffset != nil || a.Sessions == nil || n != envelope(0, 0)-1 {
		t.Errorf("an empty catalog: %+v", a)
	}
}

func title(key, title string) Row {
	return Row{key, fmt.Appendf(nil, `{"title":%q,"key":%q,"filler":%q}`, title, key, strings.Repeat("x", 300))}
}

func TestBase(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-02")
	c := newCatalog(t, title("a", "A"), title("b", "B"), title("c", "C"))
	r1, _ := c.sync(t, Request{})
	if r1.Kind != "full" || string(r1.Sessions[0][:9]) != `{"filler"` {
		t.Errorf("first read: %s; keys must be sorted", r1.Sessions[0])
	}
	if a, _ := c.sync(t, base(r1)); a.Kind != "unchanged" || a.Revision != r1.Revision {
		t.Errorf("nothing changed: %+v", a)
	}
	if a, _ := c.sync(t, Request{}); a.Revision != r1.Revision {
		t.Error("the same rows got another revision")
	}
	c.rows = []Row{title("c", "C"), title("b", "new"), title("d", "D")}
	r2, _ := c.sync(t, base(r1))
	var upserts []string
	for _, u := range r2.Upserts {
		upserts = append(upserts, string(u[len(u)-12:]))
	}
	if r2.Kind != "delta" || r2.BaseRevision != r1.Revision || r2.Revision == r1.Revision ||
		cmp.Diff([]string{"c", "b", "d"}, r2.Order) != "" || cmp.Diff([]string{"a"}, r2.RemovedKeys) != "" ||
		cmp.Diff([]string{`itle":"new"}`, `"title":"D"}`}, upserts) != "" {
		t.Errorf("delta: %+v, upserts %q", r2, upserts)
	}
	c.rows = []Row{title("b", "new"), title("c", "C"), title("d", "D")}
	r3, _ := c.sync(t, base(r2))
	if r3.Kind != "delta" || len(r3.Upserts) != 0 || len(r3.RemovedKeys) != 0 || r3.Upserts == nil || r3.RemovedKeys == nil {
		t.Errorf("another order: %+v", r3)
	}
	if a, _ := c.sync(t, base(r1)); a.Kind != "full" || a.Revision != r3.Revision || a.Offset != 0 {
		t.Errorf("a base that is gone: %+v", a)
	}
	if a, _ := c.sync(t, at(r1, 1)); a.Kind != "expired" || a.Epoch != r1.Epoch {
		t.Errorf("a page that is gone: %+v", a)
	}
	if a, _ := c.sync(t, at(r2, 1)); a.Kind != "full" || a.Revision != r2.Revision || len(a.Sessions) != 2 {
		t.Errorf("a page of the state before: %+v", a)
	}
	other := Request{Base: &Base{strings.Repeat("0", 32), r3.Revision}}
	if a, _ := c.sync(t, other); a.Kind != "full" {
		t.Errorf("a base of another life: %+v", a)
	}
	if a, _ := c.sync(t, Request{Page: &Page{strings.Repeat("0", 32), r3.Revision, 0}}); a.Kind != "expired" {
		t.Errorf("a page of another life: %+v", a)
	}
	if a, _ := c.sync(t, at(r3, 0)); a.Kind != "full" || len(a.Sessions) != 3 {
		t.Errorf("page 0: %+v", a)
	}
	for _, off := range []int{3, 4, maxRows} {
		_, err := c.Sync(t.Context(), at(r3, off))
		wantCode(t, err, codes.ParamsInvalid)
	}
}

func TestDeltaIsNeverTheLargerAnswer(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, sizedRows(3, 100)...)
	a, _ := c.sync(t, Request{})
	c.rows = append(sizedRows(2, 100), sized("k2", 90))
	if a, _ = c.sync(t, base(a)); a.Kind != "full" {
		t.Errorf("three small rows: %s", a.Kind)
	}
	c.rows = sizedRows(300, 1000)
	a, _ = c.sync(t, Request{})
	c.rows = sizedRows(300, 1001)
	if a, _ = c.sync(t, base(a)); a.Kind != "full" || *a.NextOffset == 300 {
		t.Errorf("all rows changed: %s", a.Kind)
	}
	c.rows = nil
	if a, _ = c.sync(t, base(a)); a.Kind != "full" || a.Total != 0 {
		t.Errorf("all rows gone: %s", a.Kind)
	}
}

func TestFailuresKeepTheState(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-03")
	for _, c := range []struct {
		name string
		rows []Row
		err  error
		code string
	}{
		{"an incomplete scan", nil, codes.New(codes.CatalogIncomplete), codes.CatalogIncomplete},
		{"10,001 rows", sizedRows(maxRows+1, 40), nil, codes.CatalogTooLarge},
		{"a row of 65,025 bytes", []Row{sized("a", maxRow+1)}, nil, codes.CatalogTooLarge},
		{"8 MiB and a byte", append(sizedRows(129, 65000), sized("rest", maxBytes-129*65001-1)), nil, codes.CatalogTooLarge},
		{"a key twice", []Row{sized("a", 50), sized("a", 60)}, nil, codes.CatalogIncomplete},
		{"no key", []Row{sized("", 50)}, nil, codes.CatalogIncomplete},
		{"a key of 1,025 characters", []Row{sized(strings.Repeat("k", 1025), 2000)}, nil, codes.CatalogIncomplete},
		{"not JSON", []Row{{"a", []byte(`{`)}}, nil, codes.CatalogIncomplete},
		{"not an object", []Row{{"a", []byte(`[]`)}}, nil, codes.CatalogIncomplete},
		{"too deep", []Row{{"a", []byte(strings.Repeat(`{"a":`, 25) + "1" + strings.Repeat("}", 25))}}, nil, codes.CatalogIncomplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cat := newCatalog(t, sizedRows(100, 1000)...)
			before, _ := cat.sync(t, Request{})
			cat.rows, cat.err = c.rows, c.err
			_, err := cat.Sync(t.Context(), base(before))
			wantCode(t, err, c.code)
			if a, _ := cat.sync(t, at(before, *before.NextOffset)); a.Kind != "full" || len(a.Sessions) != 35 {
				t.Errorf("the former state: %+v", a)
			}
			cat.rows, cat.err = sizedRows(100, 1000), nil
			if a, _ := cat.sync(t, base(before)); a.Kind != "unchanged" {
				t.Errorf("afterwards: %s, want unchanged", a.Kind)
			}
		})
	}
	for name, rows := range map[string][]Row{
		"10,000 rows":        sizedRows(maxRows, 40),
		"exactly 8 MiB":      append(sizedRows(129, 65000), sized("rest", maxBytes-129*65001-2)),
		"1,024 UTF-16 units": {{strings.Repeat("😀", 512), []byte(`{}`)}},
	} {
		c := newCatalog(t, rows...)
		a, _ := c.sync(t, Request{})
		seen := len(a.Sessions)
		for a.NextOffset != nil {
			a, _ = c.sync(t, at(a, *a.NextOffset))
			seen += len(a.Sessions)
		}
		if seen != len(rows) {
			t.Errorf("%s: %d rows of %d", name, seen, len(rows))
		}
	}
}

func TestParseRequest(t *testing.T) {
	t.Parallel()
	e, r := strings.Repeat("0123456789abcdef", 2), strings.Repeat("f", 32)
	for in, want := range map[string]Request{
		``:                                      {},
		`{}`:                                    {},
		`{"pageIndex":true}`:                    {PageIndex: true},
		`{"base":{"epoch":"E","revision":"R"}}`: {Base: &Base{e, r}},
		`{"pageIndex":true,"base":{"epoch":"E","revision":"R"}}`: {Base: &Base{e, r}, PageIndex: true},
		`{"page":{"epoch":"E","revision":"R","offset":10000}}`:   {Page: &Page{e, r, 10000}},
		`{"page":{"epoch":"E","revision":"R","offset":0}}`:       {Page: &Page{e, r, 0}},
	} {
		got, err := ParseRequest([]byte(strings.NewReplacer(`"E"`, `"`+e+`"`, `"R"`, `"`+r+`"`).Replace(in)))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", in, err, d)
		}
	}
	for _, in := range []string{
		`null`, `[]`, `{"x":1}`, `{"pageIndex":false}`, `{"pageIndex":null}`, `{"pageIndex":1}`, `{"base":null}`, `{"base":[]}`,
		`{"base":{"epoch":"E"}}`, `{"base":{"epoch":"E","revision":"R","x":1}}`, `{"base":{"epoch":"E","revision":"R "}}`,
		`{"base":{"epoch":"E","revision":"` + strings.Repeat("f", 31) + `"}}`,
		`{"base":{"epoch":"E","revision":"` + strings.Repeat("F", 32) + `"}}`,
		`{"base":{"epoch":"E","revision":"R"},"page":{"epoch":"E","revision":"R","offset":0}}`,
		`{"page":{"epoch":"E","revision":"R"}}`, `{"page":{"epoch":"E","revision":"R","offset":0},"pageIndex":true}`,
		`{"page":{"epoch":"E","revision":"R","offset":-1}}`, `{"page":{"epoch":"E","revision":"R","offset":10001}}`,
		`{"page":{"epoch":"E","revision":"R","offset":1.5}}`, `{"page":{"epoch":"E","revision":"R","offset":"1"}}`,
		`{"page":{"epoch":"E","revision":"R","offset":null}}`,
	} {
		_, err := ParseRequest([]byte(strings.NewReplacer(`"E"`, `"`+e+`"`, `"R"`, `"`+r+`"`).Replace(in)))
		if codes.Of(err) != codes.ParamsInvalid {
			t.Errorf("%s: %v, want params_invalid", in, err)
		}
	}
}
