package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// stage is a set of parts that start together and end together. Stages end one after the other, in the reverse order of
// their start.
type stage struct {
	name   string
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ended  func() // called when a part ends, wanted or not

	mu  sync.Mutex
	err error // guarded by mu
}

func newStage(parent context.Context, name string, log *slog.Logger, ended func()) *stage {
	s := &stage{name: name, log: log, ended: ended}
	s.ctx, s.cancel = context.WithCancel(parent)
	return s
}

// run starts a part. A part that ends by itself takes the host down, in order: half a host would look alive.
func (s *stage) run(part string, fn func(context.Context) error) {
	s.wg.Go(func() {
		defer s.ended()
		err := fn(s.ctx)
		if err == nil || s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return
		}
		s.log.Error("part ended", "part", part, "error", err)
		s.mu.Lock()
		s.err = errors.Join(s.err, err)
		s.mu.Unlock()
	})
}

// stop ends the parts and waits for them.
func (s *stage) stop() error {
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
