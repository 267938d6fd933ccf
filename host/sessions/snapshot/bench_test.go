package snapshot

import "testing"

// BenchmarkUnchanged is a reader who has everything, with a catalog of many rows.
func BenchmarkUnchanged(b *testing.B) {
	c := newCatalog(b, sizedRows(5000, 600)...)
	a, _ := c.sync(b, Request{})
	for b.Loop() {
		if got, _ := c.sync(b, base(a)); got.Kind != "unchanged" {
			b.Fatal(got.Kind)
		}
	}
}
