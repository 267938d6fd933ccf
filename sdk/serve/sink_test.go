package serve

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func textEvent(s string) runtime.Event {
	return runtime.Event{RunID: "r", Text: &runtime.TextChunk{PartID: "p", Text: s}}
}

// read streams everything a sink has into a list.
func read(t *testing.T, s *sink, n int) []*runtimev1.Event {
	t.Helper()
	var list []*runtimev1.Event
	done := errors.New("done")
	err := s.stream(t.Context(), func(w *runtimev1.WatchResponse) error {
		if len(w.GetEvents()) > batchEvents {
			t.Errorf("a batch has %d events", len(w.GetEvents()))
		}
		if list = append(list, w.GetEvents()...); len(list) >= n {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		t.Fatalf("stream: %v", err)
	}
	return list
}

func TestNumbersHaveNoGapsWhoeverEmits(t *testing.T) {
	t.Parallel()
	s := newSink(slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				s.Emit(textEvent("x"))
			}
		})
	}
	list := read(t, s, 4000)
	wg.Wait()
	for i, e := range list {
		if e.GetSeq() != uint64(i+1) {
			t.Fatalf("event %d has number %d", i, e.GetSeq())
		}
	}
	if s.Seq() != 4000 {
		t.Errorf("Seq = %d, want 4000", s.Seq())
	}
}

func TestEmitBlocksWhileTheHostIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink(slog.New(slog.DiscardHandler))
		var emitted atomic.Int64
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 3 * bufferBytes / eventOverhead {
				s.Emit(textEvent(""))
				emitted.Add(1)
			}
		})
		synctest.Wait()
		held := emitted.Load()
		if held == 0 || held > bufferBytes/eventOverhead {
			t.Errorf("%d events were taken without a reader, want some and at most %d", held, bufferBytes/eventOverhead)
		}
		read(t, s, 3*bufferBytes/eventOverhead)
		wg.Wait()
	})
}

func TestCloseLetsEveryEmitterGo(t *testing.T) {
	t.Parallel()
	s := newSink(slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 4 * bufferBytes / eventOverhead {
			s.Emit(textEvent(""))
		}
	})
	s.close()
	wg.Wait() // hangs when an emitter stays behind
	s.Emit(textEvent("after"))
}

func TestSecondStreamReplacesTheFirst(t *testing.T) {
	t.Parallel()
	s := newSink(slog.New(slog.DiscardHandler))
	first := make(chan error, 1)
	began := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		first <- s.stream(context.Background(), func(*runtimev1.WatchResponse) error { once.Do(func() { close(began) }); return nil })
	})
	s.Emit(textEvent("one"))
	<-began
	wg.Go(func() {
		for range 10 {
			s.Emit(textEvent("more"))
		}
	})
	list := read(t, s, 1)
	if err := <-first; codes.Of(err) != codes.WatchReplaced {
		t.Errorf("the first stream ended with %v, want watch_replaced", err)
	}
	if len(list) == 0 {
		t.Error("the second stream got nothing")
	}
	wg.Wait()
}

func TestTextArrivesByteForByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "texts")
		if rapid.Bool().Draw(t, "long") {
			texts = append(texts, strings.Repeat("ä€😀x", chunkBytes/5))
		}
		s := newSink(slog.New(slog.DiscardHandler))
		want := strings.Join(texts, "")
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for _, x := range texts {
				s.Emit(textEvent(x))
			}
			s.Emit(runtime.Event{CatalogChanged: &runtime.CatalogChanged{}})
		})
		var got strings.Builder
		done := errors.New("done")
		_ = s.stream(context.Background(), func(w *runtimev1.WatchResponse) error {
			for _, e := range w.GetEvents() {
				if len(e.GetText().GetText()) > chunkBytes {
					t.Fatalf("a chunk has %d bytes", len(e.GetText().GetText()))
				}
				got.WriteString(e.GetText().GetText())
			}
			if w.GetEvents()[len(w.GetEvents())-1].GetCatalogChanged() != nil {
				return done
			}
			return nil
		})
		if got.String() != want {
			t.Fatalf("%d bytes arrived, %d were emitted, or they differ", got.Len(), len(want))
		}
	})
}

func TestALongReplacementReplacesOnce(t *testing.T) {
	t.Parallel()
	s := newSink(slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		s.Emit(runtime.Event{Text: &runtime.TextChunk{PartID: "p", Text: strings.Repeat("x", 2*chunkBytes+1), Replace: true}})
	})
	list := read(t, s, 3)
	for i, e := range list {
		if e.GetText().GetReplace() != (i == 0) {
			t.Errorf("piece %d replaces: %v", i, e.GetText().GetReplace())
		}
	}
}

func TestAnEventOverTheLimitKeepsItsNumberAndItsMeaning(t *testing.T) {
	t.Parallel()
	s := newSink(slog.New(slog.DiscardHandler))
	huge := []runtime.Part{{Text: strings.Repeat("x", maxEvent)}}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		s.Emit(runtime.Event{RunID: "r", RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCompleted, Message: &runtime.Message{Parts: huge}}})
		s.Emit(runtime.Event{Notice: &runtime.Notice{Text: "bad \xff bytes"}})
	})
	list := read(t, s, 2)
	if e := list[0].GetRunEnded(); e == nil || e.GetMessage() != nil || e.GetReason() != runtimev1.EndReason_END_REASON_COMPLETED {
		t.Errorf("the end became %v, want it without its message", list[0])
	}
	if n := list[1].GetNotice().GetText(); n != "bad \uFFFD bytes" {
		t.Errorf("notice %q", n)
	}
}
