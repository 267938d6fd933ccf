package sessions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// model is a native runtime that outlives hosts and plugins: it counts prompts and remembers what it was given.
type model struct {
	mu    sync.Mutex
	given map[string]int // dispatches by prompt
	runs  map[string]string
}

func (m *model) attach(f *fake) {
	f.onCommit = func(_ context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		f.mu.Lock()
		p := f.prepared[q.RunID]
		f.mu.Unlock()
		if p == nil {
			return &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched}, nil
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.given[p.Input[0].Text]++
		m.runs[q.RunID] = p.Input[0].Text
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeDispatched}, nil
	}
}

func (m *model) reconcile(q *runtime.ReconcileRequest) *runtime.ReconcileResponse {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := &runtime.ReconcileResponse{}
	for _, o := range q.Runs {
		s := runtime.RunState{RunID: o.RunID, Phase: runtime.RunPhaseNeverSeen}
		if _, ok := m.runs[o.RunID]; ok {
			s.Phase, s.End = runtime.RunPhaseEnded, &runtime.RunEnded{Reason: runtime.EndReasonCompleted}
		}
		resp.Runs = append(resp.Runs, s)
	}
	return resp
}

// crash ends the work of a host at one of KillPoints: whoever passes it, and everybody after, goes no further.
type crash struct {
	point string
	dead  atomic.Bool
	hit   chan struct{}
	once  sync.Once
}

func (k *crash) fault(point string) {
	if point == k.point {
		k.dead.Store(true)
	}
	if k.dead.Load() {
		k.once.Do(func() { close(k.hit) })
		goruntime.Goexit()
	}
}

// The host ends at each named point of a send. The phone asks again with the same key, as it does. The runtime gets the
// prompt at most once, and the prompt ends exactly once, whoever is left to tell.
func TestKillPoints(t *testing.T) {
	rules.Covers(t, "FAULT-06")
	if len(KillPoints) != 12 {
		t.Fatalf("%d points, want 12", len(KillPoints))
	}
	for _, p := range KillPoints {
		t.Run(p.Name, func(t *testing.T) {
			r := newRig(t)
			m := &model{given: map[string]int{}, runs: map[string]string{}}
			m.attach(r.f)
			key := r.create()
			k := &crash{point: p.Name, hit: make(chan struct{})}
			r.restart(func(o *Options) { o.Fault = k.fault })
			r.up(m.reconcile)
			var answered string
			done := make(chan struct{})
			go func() {
				defer close(done)
				id, err := r.Send(t.Context(), prompt(key, "once", "k"))
				if err != nil {
					t.Errorf("send: %v", err)
				}
				answered = id
			}()
			<-done
			if p.Name == killEnding || p.Name == killEnded {
				r.dispatched(answered)
				done := make(chan struct{})
				go func() { defer close(done); r.emit(ended(answered)) }()
				<-done
			}
			select {
			case <-k.hit:
			case <-time.After(5 * time.Second):
				t.Fatal("the point was not passed")
			}
			told := len(r.seen(RunFinished))
			r.restart()
			r.f.mu.Lock()
			r.f.prepared = map[string]*runtime.PrepareRunRequest{} // the plugin ended with its host
			r.f.mu.Unlock()
			r.up(m.reconcile)

			id, recorded, err := r.PromptStatus(t.Context(), key, "k")
			if err != nil {
				t.Fatal(err)
			}
			if !recorded {
				if answered != "" {
					t.Fatal("an answered prompt has no receipt")
				}
				if m.given["once"] != 0 {
					t.Fatal("dispatched without a receipt")
				}
				id = r.send(key, "once", "k")
				r.emit(ended(id))
			} else if again, err := r.Send(t.Context(), prompt(key, "once", "k")); err != nil || again != id {
				t.Fatalf("asked again: %q, %v; want %q", again, err, id)
			}
			if m.given["once"] > 1 {
				t.Errorf("the runtime got it %d times", m.given["once"])
			}
			rec, _, err := r.db.Run(t.Context(), "fake", id)
			if err != nil || !rec.Ended {
				t.Errorf("no end is on record: %+v, %v", rec, err)
			}
			// An end that was on disk before the host ended is not told as an event: history shows it.
			if n := told + len(r.seen(RunFinished)); n > 1 || n == 0 && p.Name != killEnded {
				t.Errorf("the end was told %d times", n)
			}
			// A phone that was away finds in history what it was not told.
			h := r.page(key)
			notices := 0
			for _, x := range h.Messages {
				if x.Role == runtime.RoleSystem && x.RunID == id && x.NoticeCode == rec.EndCode {
					notices++
				}
			}
			if want := map[bool]int{true: 0, false: 1}[m.given["once"] == 1]; notices != want {
				t.Errorf("history has %d notices, want %d", notices, want)
			}
			if m.given["once"] == 1 != (runtime.EndReason(rec.EndReason) == runtime.EndReasonCompleted) {
				t.Errorf("dispatched %d times and ended as %v (%s)", m.given["once"], runtime.EndReason(rec.EndReason), rec.EndCode)
			}
		})
	}
}

func TestKillPointsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range KillPoints {
		if row := fmt.Sprintf("| %d | `%s` | %s | %s |", i+1, p.Name, p.When, p.Then); !strings.Contains(string(text), row) {
			t.Errorf("docs/faults.md has no row %s", row)
		}
	}
}

// Whatever phones, plugins and hosts do, in any order, a prompt is dispatched at most once and a receipt stays.
func TestInterleavings(t *testing.T) {
	rules.Covers(t, "FAULT-04", "FAULT-06")
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		defer r.stop()
		m := &model{given: map[string]int{}, runs: map[string]string{}}
		m.attach(r.f)
		keys := []string{r.create(), r.create()}
		receipts := map[string]string{}
		lost := false // the next commit gets no answer
		commit := r.f.onCommit
		r.f.onCommit = func(ctx context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
			resp, err := commit(ctx, q)
			if lost {
				return &runtime.CommitRunResponse{Outcome: runtime.OutcomeUnknown}, nil
			}
			return resp, err
		}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			key := rapid.SampledFrom(keys).Draw(rt, "conversation")
			switch rapid.SampledFrom([]string{"send", "send", "send", "end", "drop", "host", "plugin"}).Draw(rt, "step") {
			case "drop":
				lost = !lost
			case "send":
				k := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "key")
				name := key + " " + k
				id, err := r.Send(t.Context(), prompt(key, name, k))
				switch {
				case err == nil && receipts[name] != "" && receipts[name] != id:
					rt.Fatalf("another run for the same prompt")
				case err == nil:
					receipts[name] = id
					r.dispatched(id)
				case codes.Of(err) != codes.RunActive || receipts[name] != "":
					rt.Fatalf("send: %v", err)
				}
			case "end":
				r.mu.Lock()
				c := r.Conversations
				r.mu.Unlock()
				if h, err := c.History(t.Context(), key, "", 1); err == nil && h.ActiveRun != nil {
					r.emit(ended(h.ActiveRun.RunID))
				}
			case "host":
				r.restart()
				r.up(m.reconcile)
			case "plugin":
				r.Down(r.gen, codes.PluginCrashed)
				r.f.mu.Lock()
				r.f.prepared = map[string]*runtime.PrepareRunRequest{}
				r.f.mu.Unlock()
				r.up(m.reconcile)
			}
			for text, n := range m.given {
				if n > 1 {
					rt.Fatalf("%q was dispatched %d times", text, n)
				}
			}
			for name, id := range receipts {
				if got, recorded, err := r.PromptStatus(t.Context(), name[:len(name)-2], name[len(name)-1:]); err != nil || !recorded || got != id {
					rt.Fatalf("the receipt of %q is %q, %t, %v", name, got, recorded, err)
				}
			}
		}
	})
}
