package runtimes

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
)

// quiet ends a stream that has said nothing for too long.
type quiet struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	ctx    context.Context
}

func newQuiet(ctx context.Context) (context.Context, *quiet) {
	ctx, cancel := context.WithCancelCause(ctx)
	q := &quiet{ctx: ctx, cancel: cancel}
	q.timer = time.AfterFunc(silence, func() { cancel(context.DeadlineExceeded) })
	return ctx, q
}

func (q *quiet) heard() { q.timer.Reset(silence) }

func (q *quiet) stop() {
	q.timer.Stop()
	q.cancel(nil)
}

// failed decodes an error of the stream; silence is a missed deadline.
func (q *quiet) failed(g *generation, err error) error {
	if context.Cause(q.ctx) == context.DeadlineExceeded {
		return g.failed(codes.New(codes.DeadlineExceeded).Because(err))
	}
	return g.failed(err)
}
