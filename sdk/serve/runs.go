package serve

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// prepareHold is how long a prepared prompt waits for its word.
	prepareHold = 30 * time.Second
	// keepRuns is how many committed runs are remembered to repeat their answer; the oldest are forgotten first.
	keepRuns = 4096
	// abandonTimeout bounds AbandonRun when nobody asked for it.
	abandonTimeout = 2 * time.Second
)

// runs gives every plugin the same guarantee: one run id is prepared once, committed once, and answers the same
// whenever it is asked again. The plugin behind it never sees a repetition.
type runs struct {
	r runtime.Runtime

	mu   sync.Mutex
	byID map[string]*run
	done []string // committed run ids, oldest first
}

type run struct {
	sum       [sha256.Size]byte
	cancel    context.CancelFunc
	prepared  chan struct{} // closed when PrepareRun has answered
	resp      *runtime.PrepareRunResponse
	err       error
	expiry    *time.Timer
	abandoned bool

	committed chan struct{} // closed when CommitRun has answered; nil before it was called
	commit    *runtime.CommitRunResponse
	commitErr error
}

func newRuns(r runtime.Runtime) *runs { return &runs{r: r, byID: map[string]*run{}} }

func fingerprint(p *runtimev1.PrepareRunRequest) [sha256.Size]byte {
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	return sha256.Sum256(b)
}

// prepare runs PrepareRun, or repeats its answer. The same id with another content is operation_conflict.
func (s *runs) prepare(ctx context.Context, sum [sha256.Size]byte, q *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	s.mu.Lock()
	if x, ok := s.byID[q.RunID]; ok {
		s.mu.Unlock()
		if x.sum != sum {
			return nil, codes.New(codes.OperationConflict)
		}
		select {
		case <-x.prepared:
			return x.resp, x.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &run{sum: sum, cancel: cancel, prepared: make(chan struct{})}
	s.byID[q.RunID] = x
	s.mu.Unlock()

	answered := false
	defer func() {
		if !answered { // a panic on its way up: nothing was prepared
			s.finishPrepare(q.RunID, x, nil, codes.New(codes.Internal).With(codes.NotDispatched))
		}
	}()
	resp, err := s.r.PrepareRun(ctx, q)
	answered = true
	return s.finishPrepare(q.RunID, x, resp, err)
}

func (s *runs) finishPrepare(id string, x *run, resp *runtime.PrepareRunResponse, err error) (*runtime.PrepareRunResponse, error) {
	if err == nil && resp == nil {
		resp = &runtime.PrepareRunResponse{}
	}
	s.mu.Lock()
	drop := err == nil && x.abandoned
	if drop {
		resp, err = nil, codes.New(codes.RunNotDispatched)
	}
	x.resp, x.err = resp, err
	if err != nil {
		delete(s.byID, id)
	} else {
		x.expiry = time.AfterFunc(prepareHold, func() { s.expire(id) })
	}
	close(x.prepared)
	s.mu.Unlock()
	if drop {
		s.drop(id)
	}
	return resp, err
}

// commit runs CommitRun once. A run that is not prepared here, or no longer, is not dispatched.
func (s *runs) commit(ctx context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	s.mu.Lock()
	x, ok := s.byID[q.RunID]
	if !ok || x.resp == nil {
		s.mu.Unlock()
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotDispatched}, nil
	}
	if x.committed != nil {
		s.mu.Unlock()
		select {
		case <-x.committed:
			return x.commit, x.commitErr
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	x.committed = make(chan struct{})
	x.expiry.Stop()
	s.remember(q.RunID)
	s.mu.Unlock()

	x.commitErr = codes.New(codes.Internal) // what a panic leaves behind
	defer close(x.committed)
	x.commit, x.commitErr = s.r.CommitRun(ctx, q)
	return x.commit, x.commitErr
}

// remember keeps a bounded number of committed runs. Called with the lock held.
func (s *runs) remember(id string) {
	s.done = append(s.done, id)
	if len(s.done) > keepRuns {
		delete(s.byID, s.done[0])
		s.done = s.done[1:]
	}
}

// abandon drops a prepared run, or one that is still being prepared. A committed one is left alone.
func (s *runs) abandon(ctx context.Context, q *runtime.AbandonRunRequest) error {
	s.mu.Lock()
	x, ok := s.byID[q.RunID]
	switch {
	case !ok || x.committed != nil:
		s.mu.Unlock()
		return nil
	case x.resp == nil:
		x.abandoned = true
		x.cancel()
		s.mu.Unlock()
		return nil
	}
	x.expiry.Stop()
	delete(s.byID, q.RunID)
	s.mu.Unlock()
	return s.r.AbandonRun(ctx, q)
}

func (s *runs) expire(id string) {
	s.mu.Lock()
	x, ok := s.byID[id]
	if !ok || x.committed != nil {
		s.mu.Unlock()
		return
	}
	delete(s.byID, id)
	s.mu.Unlock()
	s.drop(id)
}

func (s *runs) drop(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	_ = s.r.AbandonRun(ctx, &runtime.AbandonRunRequest{RunID: id})
}

// held counts prompts that are prepared, or being prepared, and not committed.
func (s *runs) held() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n uint32
	for _, x := range s.byID {
		if x.committed == nil {
			n++
		}
	}
	return n
}
