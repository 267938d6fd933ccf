package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// lookTimeout bounds one look at the runtime.
const lookTimeout = 8 * time.Second

// health keeps the status. It has its own mutex so that Health waits behind nothing.
type health struct {
	now func() time.Time

	mu     sync.Mutex
	status runtime.Status
	looks  chan struct{} // closed when the look in progress is over; nil: none
}

func (h *health) init(now func() time.Time) {
	h.now = now
	h.status = runtime.Status{Condition: runtime.ConditionStarting, EvidenceAt: now(), ContentTypes: imageTypes}
}

func (h *health) capabilities(list []runtime.Capability) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Capabilities = list
	h.status.Methods = nil
	for _, m := range profileMethods() {
		h.status.Methods = append(h.status.Methods, m.Name)
	}
}

// snapshot copies the status.
func (h *health) snapshot() *runtime.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.status
	s.Capabilities = slices.Clone(s.Capabilities)
	return &s
}

// set changes the status and reports whether a phone would see it.
func (h *health) set(change func(*runtime.Status)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.status
	change(&h.status)
	h.status.EvidenceAt = h.now()
	s := h.status
	return old.Condition != s.Condition || old.Reason != s.Reason || old.NativeVersion != s.NativeVersion ||
		old.ModelID != s.ModelID || old.ProviderID != s.ProviderID
}

// fatal is the reason no child can be waited for; empty: one may come.
func (h *health) fatal() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status.Condition != runtime.ConditionUnavailable {
		return ""
	}
	switch r := h.status.Reason; r {
	case codes.RuntimeMissing, codes.RuntimeTooOld:
		return r
	}
	return ""
}

// Health implements runtime.Runtime. It never starts anything: a look asks the child that is there.
func (a *Agent) Health(ctx context.Context, r *runtime.HealthRequest) (*runtime.Status, error) {
	s := a.health.snapshot()
	if r.MaxAge == nil || a.o.Now().Sub(s.EvidenceAt) <= *r.MaxAge {
		return s, nil
	}
	oldest := a.o.Now().Add(-*r.MaxAge)
	for range 2 { // a look that had begun before may be shared and be too old
		a.mu.Lock()
		l := a.link
		a.mu.Unlock()
		if l == nil {
			break
		}
		a.look(ctx, l)
		if s = a.health.snapshot(); !s.EvidenceAt.Before(oldest) {
			break
		}
	}
	return a.health.snapshot(), nil
}

// look asks the child how it is; callers that come meanwhile wait for the same answer.
func (a *Agent) look(ctx context.Context, l *link) {
	h := &a.health
	h.mu.Lock()
	if wait := h.looks; wait != nil {
		h.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		return
	}
	done := make(chan struct{})
	h.looks = done
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.looks = nil
		h.mu.Unlock()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	models, err := l.catalog(ctx)
	if err != nil {
		a.unwell(l, err)
		return
	}
	account, err := l.client.Account(ctx)
	if err != nil {
		a.unwell(l, err)
		return
	}
	model, provider, err := l.defaults(ctx)
	broken := err != nil && appserver.Rejected(err)
	if model == "" {
		for _, m := range models {
			if m.IsDefault {
				model = m.ID
			}
		}
	}
	changed := h.set(func(s *runtime.Status) {
		s.Condition, s.Reason, s.NativeVersion = runtime.ConditionReady, "", l.version
		switch {
		case broken:
			s.Condition, s.Reason = runtime.ConditionDegraded, codeConfig
		case !account.SignedIn():
			s.Condition, s.Reason = runtime.ConditionDegraded, codes.RuntimeLoginRequired
		}
		s.ModelID, s.ProviderID = model, provider
	})
	a.tell(changed)
	if !account.SignedIn() {
		l.login.Do(func() { a.spawn(func() { a.awaitLogin(l) }) })
	}
}

// loginPoll is how often the computer is looked at for a sign-in, while one is missing.
const loginPoll = 3 * time.Second

// awaitLogin replaces the child once somebody has signed in on the computer: a running app server does not notice. The
// credentials are never read, only when their file was written.
func (a *Agent) awaitLogin(l *link) {
	tick := time.NewTicker(loginPoll)
	defer tick.Stop()
	for {
		select {
		case <-l.client.Done():
			return
		case <-tick.C:
		}
		if a.health.snapshot().Condition == runtime.ConditionReady {
			return
		}
		info, err := os.Stat(filepath.Join(l.server.CodexHome, "auth.json"))
		if err != nil || !info.ModTime().After(l.born) {
			continue
		}
		a.mu.Lock()
		idle := len(a.runs) == 0 && len(a.prepared) == 0
		a.mu.Unlock()
		if idle {
			l.end()
			return
		}
	}
}

// unwell keeps the last knowledge when the child lives and only this look failed.
func (a *Agent) unwell(l *link, err error) {
	a.log.Info("status not read", "err", err)
	select {
	case <-l.client.Done():
		return // the supervisor says so
	default:
	}
	a.tell(a.health.set(func(s *runtime.Status) {
		s.Condition, s.Reason, s.NativeVersion = runtime.ConditionDegraded, codes.RuntimeUnreachable, l.version
	}))
}

// tell reports a changed status.
func (a *Agent) tell(changed bool) {
	if !changed {
		return
	}
	s := a.health.snapshot()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emit(runtime.Event{StatusChanged: s})
}
