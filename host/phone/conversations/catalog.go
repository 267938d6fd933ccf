package conversations

import "context"

type catalog struct{ d *Dialect }

func newCatalog(d *Dialect) *catalog { return &catalog{d} }

func (d *Dialect) syncCatalog(ctx context.Context, c *call) (any, error) { return nil, nil }
