package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Version is the version of the demo runtime.
const Version = "1.0.0"

// Options for New. The zero value works.
type Options struct {
	// Log takes what a person who debugs the plugin wants to know; nil discards.
	Log *slog.Logger
	// Version overrides Version, so that an upgrade can be tried with one source.
	Version string
}

// Agent is the demo runtime.
type Agent struct {
	log     *slog.Logger
	version string
	life    context.Context // ends with Shutdown
	end     context.CancelFunc
	wg      sync.WaitGroup // runs and leases

	// mu guards what follows, and lets the journal, which is this runtime's memory, be written by one call at a time.
	mu       sync.Mutex
	sink     runtime.Sink
	host     runtime.Host
	config   config
	store    *store
	prepared map[string]*runtime.PrepareRunRequest
	live     map[string]*run      // by run id
	hung     map[string]bool      // calls that never come back, by name
	counter  int64                // demo.counter.*
	leases   map[string]time.Time // sessions somebody watches, and until when
}

// config is what the person can set; see configSchema.
type config struct {
	Greeting string   `json:"greeting"`
	Projects []string `json:"projects"`
	FailWith string   `json:"fail_with"`
}

var (
	_ runtime.Runtime          = (*Agent)(nil)
	_ runtime.Reconciler       = (*Agent)(nil)
	_ runtime.Drainer          = (*Agent)(nil)
	_ runtime.Creator          = (*Agent)(nil)
	_ runtime.Updater          = (*Agent)(nil)
	_ runtime.Detacher         = (*Agent)(nil)
	_ runtime.ProjectLister    = (*Agent)(nil)
	_ runtime.Steerer          = (*Agent)(nil)
	_ runtime.Resolver         = (*Agent)(nil)
	_ runtime.SettingsKeeper   = (*Agent)(nil)
	_ runtime.SkillLister      = (*Agent)(nil)
	_ runtime.ActivityObserver = (*Agent)(nil)
	_ runtime.AttachmentReader = (*Agent)(nil)
	_ runtime.Manager          = (*Agent)(nil)
)

// New makes the runtime. It touches nothing before Configure.
func New(o Options) *Agent {
	a := &Agent{
		log: o.Log, version: o.Version,
		prepared: map[string]*runtime.PrepareRunRequest{}, live: map[string]*run{}, hung: map[string]bool{}, leases: map[string]time.Time{},
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.version == "" {
		a.version = Version
	}
	a.life, a.end = context.WithCancel(context.Background())
	return a
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "greeting": {"type": "string", "maxLength": 200, "description": "Said before each echo."},
    "projects": {"type": "array", "maxItems": 50, "items": {"type": "string"}, "description": "Directories to offer; default: two of the demo's own."},
    "fail_with": {"type": "string", "description": "Reason to be unavailable with, such as runtime_login_required."}
  }
}`

// Describe implements runtime.Runtime.
func (a *Agent) Describe(context.Context) (*runtime.Description, error) {
	return &runtime.Description{
		RuntimeID:     "demo",
		Name:          "Demo",
		PluginVersion: a.version,
		ConfigSchema:  runtime.JSON([]byte(configSchema)),
		Environment:   []string{"OPENPHONE_KILL_FILE"},
		SessionLayout: runtime.SessionLayoutMany,
		Methods:       methods(),
		Phrases: []runtime.Phrase{
			{Code: "demo.failed", Text: "The demo was told to fail."},
			{Code: "demo.refused", Text: "The demo was told to refuse this prompt."},
			{Code: "demo.note", Text: "A notice from the demo."},
		},
		SideBySide: true,
	}, nil
}

// Configure implements runtime.Runtime.
func (a *Agent) Configure(_ context.Context, r *runtime.ConfigureRequest, host runtime.Host) error {
	var c config
	if len(r.Config.Data) > 0 {
		if err := json.Unmarshal(r.Config.Data, &c); err != nil {
			return codes.New(codes.ConfigInvalid, "where", "config").Because(err)
		}
	}
	for _, p := range c.Projects {
		if !filepath.IsAbs(p) {
			return codes.New(codes.ConfigInvalid, "where", "projects")
		}
	}
	if !filepath.IsAbs(r.DataDir) {
		return codes.New(codes.ConfigInvalid, "where", "data_dir")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store != nil && a.store.dir != r.DataDir {
		return codes.New(codes.RestartRequired)
	}
	if a.store == nil {
		s, err := openStore(r.DataDir)
		if err != nil {
			return codes.New(codes.StoreUnreadable).Because(err)
		}
		a.store = s
	}
	if len(c.Projects) == 0 && r.ProjectPath == "" {
		for _, name := range []string{"alpha", "beta"} {
			p := filepath.Join(r.DataDir, "projects", name)
			if err := os.MkdirAll(p, 0o700); err != nil {
				return codes.New(codes.StoreUnreadable).Because(err)
			}
			c.Projects = append(c.Projects, p)
		}
	}
	if r.ProjectPath != "" {
		c.Projects = []string{r.ProjectPath}
	}
	a.config, a.host = c, host
	return nil
}

// Health implements runtime.Runtime.
func (a *Agent) Health(context.Context, *runtime.HealthRequest) (*runtime.Status, error) {
	a.maybeHang("health")
	a.mu.Lock()
	defer a.mu.Unlock()
	st := &runtime.Status{
		Condition: runtime.ConditionReady, EvidenceAt: time.Now(), NativeVersion: a.version,
		ContentTypes: []string{"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "application/pdf"},
		ModelID:      defaultModel, ProviderID: provider,
	}
	switch {
	case a.store == nil:
		st.Condition = runtime.ConditionStarting
	case a.config.FailWith != "":
		st.Condition, st.Reason = runtime.ConditionUnavailable, a.config.FailWith
	}
	return st, nil
}

// Watch implements runtime.Runtime.
func (a *Agent) Watch(_ context.Context, sink runtime.Sink) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sink = sink
	return nil
}

// Shutdown implements runtime.Runtime: what still runs is cut and found again by the next process.
func (a *Agent) Shutdown(ctx context.Context) error {
	a.maybeHang("shutdown")
	a.end()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { a.wg.Wait(); close(done) })
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		return nil
	}
	return a.store.close()
}

// Drain implements runtime.Drainer.
func (a *Agent) Drain(_ context.Context, _ *runtime.DrainRequest) (*runtime.DrainResponse, error) {
	a.maybeHang("drain")
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &runtime.DrainResponse{}
	for id := range a.live {
		out.RunIds = append(out.RunIds, id)
	}
	return out, nil
}

// maybeHang never returns when a prompt has asked for that.
func (a *Agent) maybeHang(call string) {
	a.mu.Lock()
	hang := a.hung[call]
	a.mu.Unlock()
	if hang {
		<-make(chan struct{})
	}
}

// emit hands an event of a conversation to the host.
func (a *Agent) emit(ref runtime.SessionRef, e runtime.Event) {
	e.SessionID, e.NativeID = ref.SessionID, ref.NativeID
	a.sinkNow().Emit(e)
}

func (a *Agent) sinkNow() runtime.Sink {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sink
}

// opened gives the store, or an error before Configure.
func (a *Agent) opened() (*store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		return nil, codes.New(codes.RuntimeUnavailable).With(codes.NotDispatched)
	}
	return a.store, a.store.refresh()
}

// ListProjects implements runtime.ProjectLister.
func (a *Agent) ListProjects(context.Context) ([]runtime.Project, error) {
	a.maybeHang("projects")
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []runtime.Project
	for _, p := range a.config.Projects {
		list = append(list, runtime.Project{Path: p})
	}
	return list, nil
}

// ListSkills implements runtime.SkillLister.
func (a *Agent) ListSkills(context.Context, *runtime.ListSkillsRequest) ([]runtime.Skill, error) {
	list := []runtime.Skill{{SkillID: "echo", Name: "Echo", Description: "Says a sentence back.", Invocation: "/say ", Source: "system", Kind: runtime.SkillKindSkill}}
	for _, c := range commands {
		list = append(list, runtime.Skill{SkillID: c.name, Name: "/" + c.name, Description: c.help, Invocation: strings.TrimSpace("/"+c.name) + " ", Source: "system", Kind: runtime.SkillKindCommand})
	}
	return list, nil
}

// ObserveActivity implements runtime.ActivityObserver. Nothing runs outside the plugin here, so the evidence is its own.
func (a *Agent) ObserveActivity(_ context.Context, r *runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]runtime.SessionActivity, 0, len(r.Sessions))
	for _, ref := range r.Sessions {
		x := a.activity(ref)
		if r.Lease > 0 {
			a.leases[nativeOf(ref)] = time.Now().Add(min(r.Lease, 45*time.Second))
		}
		list = append(list, x)
	}
	return list, nil
}

// activity is what a conversation does. Called with the lock held.
func (a *Agent) activity(ref runtime.SessionRef) runtime.SessionActivity {
	x := runtime.SessionActivity{Ref: ref, Activity: runtime.ActivityIdle, EvidenceAt: time.Now()}
	for _, r := range a.live {
		if r.ref.NativeID != nativeOf(ref) {
			continue
		}
		x.Activity = runtime.ActivityRunning
		if k := r.waitingFor(); k != runtime.AttentionKindUnspecified {
			x.Activity, x.Attention = runtime.ActivityWaiting, k
		}
	}
	return x
}

// tellActivity reports a change to whoever holds a lease.
func (a *Agent) tellActivity(ref runtime.SessionRef) {
	a.mu.Lock()
	watched := time.Now().Before(a.leases[ref.NativeID])
	x := a.activity(ref)
	a.mu.Unlock()
	if watched {
		a.emit(ref, runtime.Event{ActivityChanged: &x})
	}
}
