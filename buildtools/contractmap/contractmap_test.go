package contractmap

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const proto = `
// A comment { with a brace.
message Outer {
  // Field.
  string name = 1;
  oneof kind {
    Other other = 2;
  }
  map<string, string> options = 3;
}
message Empty {}
enum Colour {
  COLOUR_UNSPECIFIED = 0;
}
service DoService {
  rpc Do(DoRequest) returns (DoResponse);
}
`

func TestSymbols(t *testing.T) {
	t.Parallel()
	got, err := Symbols(fstest.MapFS{"proto/x.proto": {Data: []byte(proto)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Outer", "Outer.name", "Outer.other", "Outer.options", "Empty", "Colour", "COLOUR_UNSPECIFIED", "DoService.Do"} {
		if !got[want] {
			t.Errorf("no %s in %v", want, got)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	page := "## Methods\n| need | carried by | remark |\n|---|---|---|\n| `chat.send` | `DoService.Do`, `Outer.gone` | |\n| chat.abort | nothing | |\n| chat.steer | host | |\n"
	got, err := Check(fstest.MapFS{"proto/x.proto": {Data: []byte(proto)}, Doc: {Data: []byte(page)}})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{":4: the protos have no Outer.gone", ":5: no symbol carries this", "no row for Methods chat.history"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	if strings.Contains(all, "no row for Methods chat.send") {
		t.Error("a row that is there was reported missing")
	}
}

func TestThePage(t *testing.T) {
	t.Parallel()
	got, err := Check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range got {
		t.Error(g)
	}
}
