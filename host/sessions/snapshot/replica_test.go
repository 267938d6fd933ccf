package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/internal/rules"
)

// A phone that follows the protocol always ends with the rows the host has, whatever changes in between.
func TestReplicaFollows(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-02")
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		for range 3 {
			r := randomRow(rng)
			c.rows = append(remove(c.rows, r.Key), r)
		}
		var p phone
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			for range rng.IntN(3) {
				if len(c.rows) > 0 {
					i := rng.IntN(len(c.rows))
					c.rows = append(append([]Row(nil), c.rows[:i]...), c.rows[i+1:]...)
				}
			}
			for range rng.IntN(4) {
				r := randomRow(rng)
				c.rows = append([]Row{r}, remove(c.rows, r.Key)...)
			}
			if err := p.sync(t, c, rng.IntN(2) == 0); err != nil {
				rt.Fatal(err)
			}
			if len(p.rows) != len(c.rows) {
				rt.Fatalf("%d rows, want %d", len(p.rows), len(c.rows))
			}
			for i, r := range c.rows {
				if p.rows[i].Key != r.Key || len(p.rows[i].JSON) != len(r.JSON) {
					rt.Fatalf("row %d differs", i)
				}
			}
		}
	})
}

func randomRow(rng *rand.Rand) Row {
	return sized(fmt.Sprint("key", rng.IntN(30)), 60+rng.IntN(9000))
}

func remove(rows []Row, key string) []Row {
	var out []Row
	for _, r := range rows {
		if r.Key != key {
			out = append(out, r)
		}
	}
	return out
}

// phone is a reader with a baseline.
type phone struct {
	epoch, revision string
	rows            []Row
}

func (p *phone) sync(t testing.TB, c *catalog, index bool) error {
	r := Request{PageIndex: index}
	if p.epoch != "" {
		r.Base = &Base{p.epoch, p.revision}
	}
	a, _ := c.sync(t, r)
	switch a.Kind {
	case "unchanged":
		return nil
	case "delta":
		have := map[string]Row{}
		for _, r := range p.rows {
			have[r.Key] = r
		}
		for _, k := range a.RemovedKeys {
			delete(have, k)
		}
		for _, u := range a.Upserts {
			have[keyOf(u)] = Row{keyOf(u), u}
		}
		p.rows = nil
		for _, k := range a.Order {
			p.rows = append(p.rows, have[k])
		}
	case "full":
		rows := a.Sessions
		for next := a.NextOffset; next != nil; {
			b, _ := c.sync(t, at(a, *next))
			if b.Kind != "full" || b.Offset != len(rows) || len(b.Sessions) == 0 {
				return fmt.Errorf("continuation %+v", b.Kind)
			}
			rows, next = append(rows, b.Sessions...), b.NextOffset
		}
		p.rows = nil
		for _, s := range rows {
			p.rows = append(p.rows, Row{keyOf(s), s})
		}
	default:
		return errors.New(a.Kind)
	}
	p.epoch, p.revision = a.Epoch, a.Revision
	return nil
}

func keyOf(row []byte) string {
	var r struct{ Key string }
	_ = json.Unmarshal(row, &r)
	return r.Key
}
