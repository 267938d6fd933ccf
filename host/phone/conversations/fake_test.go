package conversations

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/host/phone"
	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// fakeService gives what a test has put into it and notes what it was asked. Methods it does not have panic, so a test
// sees it when the dialect asks for more than it should.
type fakeService struct {
	sessions.Service
	mu          sync.Mutex
	health      sessions.Health
	err         error // of every method
	rows        []sessions.Row
	incomplete  bool
	generation  uint64
	onList      func()
	activity    []runtime.SessionActivity
	activityFor []string
	sent        []sessions.SendInput
	recorded    map[string]string
	ran         bool
	steered     string
	history     func(cursor string, max int) (*sessions.History, error)
	questions   []sessions.OpenInteraction
	approvals   []sessions.OpenInteraction
	answer      *sessions.Answer
	decision    *runtime.Decision
	person      sessions.Person
	settings    runtime.Settings
	change      *sessions.SettingsChange
	skills      []runtime.Skill
	managed     string
	reply       string
	created     []string
	renamed     string
	pieces      func(offset int64) (*sessions.ArtifactPiece, error)
	deliver     func(sessions.Update)
}

func (f *fakeService) RuntimeID() string { return "demo" }
func (f *fakeService) Health(context.Context) (*sessions.Health, error) {
	h := f.health
	return &h, f.err
}

func (f *fakeService) Projects(context.Context) ([]sessions.Project, error) {
	return []sessions.Project{{ID: "p1", Name: "one", Path: "/one", Available: true}, {ID: "p2", Name: "gone", Path: "/gone"}}, f.err
}

func (f *fakeService) List(_ context.Context, strict bool) ([]sessions.Row, error) {
	if f.onList != nil {
		f.onList()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if strict && f.incomplete {
		return nil, codes.New(codes.CatalogIncomplete)
	}
	return append([]sessions.Row(nil), f.rows...), f.err
}
func (f *fakeService) Archived(context.Context) ([]sessions.Row, error) { return f.rows, f.err }
func (f *fakeService) Lookup(_ context.Context, key string) (sessions.Row, error) {
	for _, r := range f.rows {
		if r.Key == key {
			return r, nil
		}
	}
	return sessions.Row{}, codes.New(codes.SessionUnknown)
}

func (f *fakeService) Generation() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generation
}

func (f *fakeService) Activity(_ context.Context, keys []string) ([]runtime.SessionActivity, error) {
	f.activityFor = keys
	out := make([]runtime.SessionActivity, len(keys))
	copy(out, f.activity)
	return out, f.err
}

func (f *fakeService) Create(_ context.Context, title, projectID, from string) (sessions.Row, error) {
	f.created = []string{title, projectID, from}
	return sessions.Row{Key: "new", Title: title}, f.err
}

func (f *fakeService) Rename(_ context.Context, key, title string) (sessions.Row, error) {
	f.renamed = key + "=" + title
	return sessions.Row{Key: key, Title: title}, f.err
}

func (f *fakeService) Archive(_ context.Context, key string, on bool) (sessions.Row, error) {
	return sessions.Row{Key: key, Archived: on}, f.err
}
func (f *fakeService) Reset(context.Context, string) error  { return f.err }
func (f *fakeService) Delete(context.Context, string) error { return f.err }
func (f *fakeService) History(_ context.Context, _, cursor string, max int) (*sessions.History, error) {
	return f.history(cursor, max)
}

func (f *fakeService) Send(_ context.Context, in sessions.SendInput) (string, error) {
	f.sent = append(f.sent, in)
	return "run-1", f.err
}

func (f *fakeService) PromptStatus(_ context.Context, key, id string) (string, bool, error) {
	run, ok := f.recorded[id]
	return run, ok, f.err
}
func (f *fakeService) Abort(context.Context, string, string) (bool, error) { return f.ran, f.err }
func (f *fakeService) Steer(_ context.Context, key, runID, text string) error {
	f.steered = key + " " + runID + " " + text
	return f.err
}

func (f *fakeService) Questions(context.Context, string) ([]sessions.OpenInteraction, error) {
	return f.questions, f.err
}

func (f *fakeService) Approvals(context.Context, string) ([]sessions.OpenInteraction, error) {
	return f.approvals, f.err
}

func (f *fakeService) Respond(_ context.Context, by sessions.Person, _, _ string, a sessions.Answer) error {
	f.person, f.answer = by, &a
	return f.err
}

func (f *fakeService) Resolve(_ context.Context, by sessions.Person, _ string, d runtime.Decision) error {
	f.person, f.decision = by, &d
	return f.err
}

func (f *fakeService) Settings(context.Context, string) (*runtime.Settings, error) {
	return &f.settings, f.err
}

func (f *fakeService) SetSettings(_ context.Context, _ string, c sessions.SettingsChange) (*runtime.Settings, error) {
	f.change = &c
	return &f.settings, f.err
}

func (f *fakeService) Skills(context.Context, string) ([]runtime.Skill, error) {
	return f.skills, f.err
}

func (f *fakeService) OpenArtifact(_ context.Context, _, id string) (*sessions.ArtifactInfo, error) {
	return &sessions.ArtifactInfo{ID: id, Name: "r.pdf", MIME: "application/pdf", Size: 5}, f.err
}

func (f *fakeService) ReadArtifact(_ context.Context, _, _ string, offset int64) (*sessions.ArtifactPiece, error) {
	return f.pieces(offset)
}

func (f *fakeService) Manage(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	f.managed = method + " " + string(params)
	return json.RawMessage(f.reply), f.err
}

func (f *fakeService) Subscribe(fn func(sessions.Update)) func() {
	f.deliver = fn
	return func() { f.deliver = nil }
}

// fakePeer collects what a phone gets.
type fakePeer struct {
	id     string
	relay  bool
	mu     sync.Mutex
	frames []string
	keys   []string
}

func (p *fakePeer) Phone() phone.Phone { return phone.Phone{ID: p.id, Label: "phone " + p.id} }
func (p *fakePeer) Direct() bool       { return !p.relay }
func (p *fakePeer) Event(frame []byte, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames, p.keys = append(p.frames, string(frame)), append(p.keys, key)
}

// take gives the payloads of the events since the last call, in one string per event.
func (p *fakePeer) take(t *testing.T) []string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, f := range p.frames {
		var e clawket.Incoming
		if err := json.Unmarshal([]byte(f), &e); err != nil || e.Type != clawket.TypeEvent {
			t.Fatalf("not an event: %s", f)
		}
		out = append(out, string(e.Payload))
	}
	p.frames, p.keys = nil, nil
	return out
}

type world struct {
	t *testing.T
	d *Dialect
	f *fakeService
	p *fakePeer
}

func begin(t *testing.T, backend string) *world {
	t.Helper()
	f := &fakeService{health: sessions.Health{
		Status:      runtime.Status{Condition: runtime.ConditionReady},
		Description: &runtime.Description{Name: "Agent", Phrases: []runtime.Phrase{{Code: "demo.tired", Text: "It is tired of {what}."}}},
	}}
	d := New(Options{Backend: backend, Service: f, Version: "1.2.3"})
	t.Cleanup(d.Close)
	w := &world{t: t, d: d, f: f, p: &fakePeer{id: "a"}}
	d.Join(w.p)
	return w
}

func (w *world) try(method, params string) (string, error) {
	w.t.Helper()
	result, err := w.d.Serve(context.Background(), w.p, method, json.RawMessage(params))
	if err != nil {
		return "", err
	}
	text, merr := jsonframe.Marshal(result)
	if merr != nil {
		w.t.Fatal(merr)
	}
	return string(text), nil
}

func (w *world) ask(method, params string) string {
	w.t.Helper()
	text, err := w.try(method, params)
	if err != nil {
		w.t.Fatalf("%s %.200s: %v", method, params, err)
	}
	return text
}

func (w *world) refused(method, params, code string) {
	w.t.Helper()
	if text, err := w.try(method, params); codes.Of(err) != code {
		w.t.Errorf("%s %.200s: got %.200s %v, want %s", method, params, text, err, code)
	}
}

// same compares JSON texts by meaning.
func same(t *testing.T, got, want string) {
	t.Helper()
	var g, x any
	if err := errors.Join(json.Unmarshal([]byte(got), &g), json.Unmarshal([]byte(want), &x)); err != nil {
		t.Fatalf("%v\n%s\n%s", err, got, want)
	}
	if diff := cmp.Diff(x, g); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

var noon = time.UnixMilli(1_700_000_000_000)

func str(s string) *string { return &s }

func repeat(s string, n int) string { return strings.Repeat(s, n) }
