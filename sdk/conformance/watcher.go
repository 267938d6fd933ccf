package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
)

// watcher reads the events of one process and keeps them all.
type watcher struct {
	cancel context.CancelFunc

	mu     sync.Mutex
	list   []*runtimev1.Event
	gap    string // first break in the numbers
	last   uint64
	err    error
	ended  bool
	paused chan struct{} // non-nil: the reader waits for it before its next read
	news   chan struct{} // closed and replaced with every change
}

// watch opens the one stream of events.
func (p *process) watch() error {
	w, stream, err := p.openWatch(0)
	if err != nil {
		return err
	}
	p.events = w
	var wg sync.WaitGroup
	wg.Go(func() { w.read(stream) })
	return nil
}

func (p *process) openWatch(last uint64) (*watcher, runtimev1.RuntimeService_WatchClient, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := p.Runtime.Watch(ctx, &runtimev1.WatchRequest{})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return &watcher{cancel: cancel, news: make(chan struct{}), last: last}, stream, nil
}

func (w *watcher) read(stream runtimev1.RuntimeService_WatchClient) {
	for {
		w.mu.Lock()
		paused := w.paused
		w.mu.Unlock()
		if paused != nil {
			<-paused
		}
		m, err := stream.Recv()
		w.mu.Lock()
		for _, e := range m.GetEvents() {
			if e.GetSeq() != w.last+1 && w.gap == "" {
				w.gap = fmt.Sprintf("event %d follows %d", e.GetSeq(), w.last)
			}
			w.last = e.GetSeq()
			w.list = append(w.list, e)
		}
		w.err, w.ended = err, err != nil
		close(w.news)
		w.news = make(chan struct{})
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// pause stops reading until the returned function is called.
func (w *watcher) pause() (resume func()) {
	ch := make(chan struct{})
	w.mu.Lock()
	w.paused = ch
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		w.paused = nil
		w.mu.Unlock()
		close(ch)
	}
}

// all gives the events so far.
func (w *watcher) all() []*runtimev1.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list[:len(w.list):len(w.list)]
}

// gapped tells the first break in the numbers; empty: none.
func (w *watcher) gapped() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gap
}

// until waits for an event that ok accepts, at position from or later, and gives it with the position after it.
func (w *watcher) until(ctx context.Context, from int, ok func(*runtimev1.Event) bool) (*runtimev1.Event, int, error) {
	for i := from; ; {
		w.mu.Lock()
		list, news, err, ended := w.list, w.news, w.err, w.ended
		w.mu.Unlock()
		for ; i < len(list); i++ {
			if ok(list[i]) {
				return list[i], i + 1, nil
			}
		}
		if ended {
			return nil, i, fmt.Errorf("the event stream ended: %w", err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, i, fmt.Errorf("no such event in time (%d events seen)", len(list))
		}
	}
}

// within waits like until, for at most d.
func (w *watcher) within(d time.Duration, from int, ok func(*runtimev1.Event) bool) (*runtimev1.Event, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return w.until(ctx, from, ok)
}
