package stamp

import (
	"slices"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	a, b := time.Unix(1_800_000_000, 1), time.Unix(1_800_000_000, 2)
	for _, c := range []struct {
		name, frame string
		want        []int64
	}{
		{"none", `{"type":"tick"}`, nil},
		{"one", `{"text":"` + Text(a) + `"}`, []int64{a.UnixNano()}},
		{"two in one frame", `{"text":"` + Text(a) + Text(b) + `"}`, []int64{a.UnixNano(), b.UnixNano()}},
		{"a mark of somebody else", `{"title":"x^y","text":"` + Text(b) + `"}`, []int64{b.UnixNano()}},
		{"cut", `{"text":"^18000`, nil},
	} {
		if got := Find(nil, []byte(c.frame)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
