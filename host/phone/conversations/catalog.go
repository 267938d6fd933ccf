package conversations

import (
	"context"

	"github.com/openphone-host/openphone/host/sessions/snapshot"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// newCatalog makes the synchronised catalog of this backend: its rows are the descriptors phones see, read strictly, so
// that a partial list is never taken for a complete one (SYNC-03).
func (d *Dialect) newCatalog() *snapshot.Catalog {
	return snapshot.New(snapshot.Options{
		Generation: d.svc.Generation,
		Read: func(ctx context.Context) ([]snapshot.Row, error) {
			rows, err := d.svc.List(ctx, true)
			if err != nil {
				return nil, err
			}
			out := make([]snapshot.Row, 0, len(rows))
			for i := range rows {
				text, err := jsonframe.Marshal(d.descriptor(&rows[i]))
				if err != nil {
					return nil, err
				}
				out = append(out, snapshot.Row{Key: rows[i].Key, JSON: text})
			}
			return out, nil
		},
	})
}

// syncCatalog answers sessions.sync; its parameters are checked strictly, whatever else is tolerated elsewhere.
func (d *Dialect) syncCatalog(ctx context.Context, c *call) (any, error) {
	r, err := snapshot.ParseRequest(c.raw)
	if err != nil {
		return nil, err
	}
	if !d.traits.pageIndex {
		r.PageIndex = false
	}
	return d.catalog.Sync(ctx, r)
}
