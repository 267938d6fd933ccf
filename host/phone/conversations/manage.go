package conversations

import (
	"context"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// create begins a conversation, or a copy of another one. Codex and Pi cut a title that is too long, Claude refuses it.
func (d *Dialect) create(ctx context.Context, c *call) (any, error) {
	var title string
	if d.traits.titleRefused {
		if c.given("title") {
			if title = c.anyText("title"); !c.failed && (blank(title) || jsonframe.Units(title) > d.traits.titleUnits) {
				return nil, codes.New(codes.TitleInvalid)
			}
		}
	} else {
		title = jsonframe.CutUnits(c.optional("title", clawket.MaxFrame), d.traits.titleUnits)
	}
	project := c.optional("projectId", clawket.MaxKeyUnits)
	from := c.optional("fromSession", clawket.MaxSessionKeyUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	if d.traits.titleRefused && from != "" && project != "" {
		return nil, codes.New(codes.ParamsInvalid)
	}
	row, err := d.svc.Create(ctx, title, project, from)
	if err != nil {
		return nil, err
	}
	return d.descriptor(&row), nil
}

func (d *Dialect) rename(ctx context.Context, c *call) (any, error) {
	key, title := c.sessionKey(), c.anyText("title")
	if err := c.err(); err != nil {
		return nil, err
	}
	if blank(title) || jsonframe.Units(title) > d.traits.titleUnits {
		return nil, codes.New(codes.TitleInvalid)
	}
	_, err := d.svc.Rename(ctx, key, title)
	return done(err)
}

func (d *Dialect) archive(ctx context.Context, c *call) (any, error) {
	key, archived := c.sessionKey(), c.flag("archived")
	if err := c.err(); err != nil {
		return nil, err
	}
	_, err := d.svc.Archive(ctx, key, archived)
	return done(err)
}

func (d *Dialect) reset(ctx context.Context, c *call) (any, error) {
	key := c.sessionKey()
	if err := c.err(); err != nil {
		return nil, err
	}
	return done(d.svc.Reset(ctx, key))
}

func (d *Dialect) delete(ctx context.Context, c *call) (any, error) {
	key := c.sessionKey()
	if err := c.err(); err != nil {
		return nil, err
	}
	return done(d.svc.Delete(ctx, key))
}

// done is the answer of a change: the error, or ok.
func done(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return acknowledged{OK: true}, nil
}
