// Package conformance is the black-box test of a plugin executable: everything the contract asks of a plugin author that
// can be seen from outside, in any language. It starts the plugin as the host does, plays the host's side of the contract,
// and judges answers, events, processes and files. cmd/openphone-conform is its command line.
//
// It knows no runtime. What a prompt has to say so that a runtime writes a long reply or asks for consent is told by the
// caller, in Prompts.
//
// Concurrency: a Run is one sequence of cases; several Runs may go on side by side.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Prompts makes the runtime behind the plugin do what a case needs. A case whose prompt is missing fails when the plugin
// advertises what it is about, because what was not tried was not shown.
type Prompts struct {
	Text     string `json:"text"`     // a short reply; default "Say hello."
	Long     string `json:"long"`     // a reply of at least three seconds and 20 pieces
	Flood    string `json:"flood"`    // as many pieces as the runtime can make, for ten seconds or more; default Long
	Tool     string `json:"tool"`     // a reply with a tool call
	Approval string `json:"approval"` // a reply that asks for consent and goes on either way
	Question string `json:"question"` // a reply that asks a question of select, confirm, line or text fields
	Steer    string `json:"steer"`    // a reply that can be steered for two seconds; default Long
}

// Options for Run. Only Path is needed.
type Options struct {
	// Path is the plugin executable; Args come after it.
	Path string
	Args []string
	// Env is what the plugin gets besides HOME, TMPDIR, PATH and the handshake, as name=value.
	Env []string
	// Config is the plugin's configuration as JSON.
	Config []byte
	// Project is the directory conversations work in; default: one made for the run.
	Project string
	// Prompts speak to the runtime.
	Prompts Prompts
	// Groups restricts the run to these names; empty: all.
	Groups []string
	// ReadOnly is a file or folder of the native runtime that must not change; empty: not checked.
	ReadOnly string
	// Pause is how long the reader of events stops in the backpressure group; default 30 s.
	Pause time.Duration
	// CaseTimeout bounds one case; default 90 s.
	CaseTimeout time.Duration
}

// Status is what became of a case.
type Status string

// Statuses. A skipped case is about a capability the plugin does not advertise, or about another operating system.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Result is one case.
type Result struct {
	Group   string        `json:"group"`
	Case    string        `json:"case"`
	Status  Status        `json:"status"`
	Detail  string        `json:"detail,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Name is group/case.
func (r Result) Name() string { return r.Group + "/" + r.Case }

// Summary counts the results of a run.
type Summary struct {
	Runtime string `json:"runtime"`
	Version string `json:"version"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
}

// OK says that everything the plugin advertises was shown.
func (s Summary) OK() bool { return s.Failed == 0 && s.Passed > 0 }

// testCase is one case. needs are the capabilities without which it is skipped.
type testCase struct {
	group, name string
	needs       []runtime.Capability
	run         func(*T)
}

// cases lists all of them, in the order of the groups.
func cases() []testCase {
	return slices.Concat(startCases, describeCases, sendCases, cancelCases, crashCases, networkCases, backpressureCases, approvalCases,
		historyCases, badInputCases, upgradeCases, catalogCases, settingsCases, managementCases, channelCases)
}

// Groups names the groups in order.
func Groups() []string {
	var list []string
	for _, c := range cases() {
		if !slices.Contains(list, c.group) {
			list = append(list, c.group)
		}
	}
	return list
}

// kit is what the cases of one run share.
type kit struct {
	o                     Options
	short                 string // socket directories, on a short path
	root, home, tmp, work string
	killFile              string // names the kill point, for plugins that know kill points
	description           *runtime.Description
	raw                   *runtimev1.Description
	proxied               bool // the next plugin is reached through a fault proxy
	silent                bool // the plugin carries channels and never replies
	count                 int

	stateMu sync.Mutex
	states  map[string]*hostState // by data directory
}

// Run tests one executable and reports each case as it ends. The error says that nothing could be tested at all.
func Run(ctx context.Context, o Options, report func(Result)) (Summary, error) {
	k, cleanup, err := newKit(o)
	if err != nil {
		return Summary{}, err
	}
	defer cleanup()
	if err := k.describe(ctx); err != nil {
		return Summary{}, fmt.Errorf("the plugin cannot be started and described: %w", err)
	}
	if err := k.listen(ctx); err != nil {
		return Summary{}, fmt.Errorf("the plugin cannot be configured: %w", err)
	}
	sum := Summary{Runtime: k.description.RuntimeID, Version: k.description.PluginVersion}
	for _, c := range cases() {
		if len(k.o.Groups) > 0 && !slices.Contains(k.o.Groups, c.group) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		r := k.runCase(ctx, c)
		switch r.Status {
		case Pass:
			sum.Passed++
		case Fail:
			sum.Failed++
		default:
			sum.Skipped++
		}
		report(r)
	}
	return sum, nil
}

func newKit(o Options) (*kit, func(), error) {
	abs, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, nil, err
	}
	o.Path = abs
	if _, err := os.Stat(o.Path); err != nil {
		return nil, nil, err
	}
	if o.Pause <= 0 {
		o.Pause = 30 * time.Second
	}
	if o.CaseTimeout <= 0 {
		o.CaseTimeout = 90*time.Second + o.Pause
	}
	if o.Prompts.Text == "" {
		o.Prompts.Text = "Say hello."
	}
	if o.Prompts.Flood == "" {
		o.Prompts.Flood = o.Prompts.Long
	}
	if o.Prompts.Steer == "" {
		o.Prompts.Steer = o.Prompts.Long
	}
	root, err := os.MkdirTemp("", "opc")
	if err != nil {
		return nil, nil, err
	}
	k := &kit{o: o, root: root, short: filepath.Join(root, "s"), home: filepath.Join(root, "home"), tmp: filepath.Join(root, "tmp"), work: filepath.Join(root, "work")}
	for _, d := range []string{k.short, k.home, k.tmp, k.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, nil, err
		}
	}
	if k.o.Project == "" {
		k.o.Project = k.work
	}
	return k, func() { _ = os.RemoveAll(root) }, nil
}

// describe asks the plugin once who it is, in the way an untrusted executable is asked.
func (k *kit) describe(ctx context.Context) error {
	p, err := k.launch(ctx, k.dataDir(), nil)
	if err != nil {
		return err
	}
	defer p.Kill()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	d, err := p.Runtime.Describe(ctx, &runtimev1.DescribeRequest{})
	if err != nil {
		return err
	}
	if d.GetDescription().GetRuntimeId() == "" {
		return errors.New("the description has no runtime_id")
	}
	k.raw, k.description = d.GetDescription(), protomap.FromDescription(d.GetDescription())
	return nil
}

// listen finds out whether the plugin replies at all.
func (k *kit) listen(ctx context.Context) error {
	if !k.has(runtime.CapabilityChannels) || len(k.description.Capabilities) > 1 {
		return nil
	}
	p, err := k.launch(ctx, k.dataDir(), nil)
	if err != nil {
		return err
	}
	defer p.Kill()
	k.silent = true
	if err := p.ready(ctx, k); err != nil {
		return err
	}
	h, err := p.Runtime.Health(ctx, &runtimev1.HealthRequest{})
	if err != nil {
		return err
	}
	k.silent = h.GetStatus().GetCondition() == runtimev1.Condition_CONDITION_DEGRADED
	return nil
}

// dataDir makes a new, empty data directory.
func (k *kit) dataDir() string {
	k.count++
	d := filepath.Join(k.root, fmt.Sprintf("data%d", k.count))
	_ = os.Mkdir(d, 0o700)
	return d
}

// mute says that the plugin carries channels alone: it reports itself degraded and advertises nothing a conversation could
// have. Cases that need a reply are skipped for it.
func (k *kit) mute() bool { return k.silent }

func (k *kit) has(c runtime.Capability) bool { return runtime.Has(k.description.Capabilities, c) }

func (k *kit) runCase(ctx context.Context, c testCase) (res Result) {
	res = Result{Group: c.group, Case: c.name}
	for _, n := range c.needs {
		if !k.has(n) {
			res.Status, res.Detail = Skip, "no "+n.String()
			return res
		}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, k.o.CaseTimeout)
	defer cancel()
	t := &T{kit: k, ctx: ctx}
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(stop); !ok {
				t.problems = append(t.problems, fmt.Sprint("panic: ", v))
			}
		}
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
		res.Elapsed = time.Since(start)
		switch {
		case len(t.problems) > 0:
			res.Status, res.Detail = Fail, strings.Join(t.problems, "; ")
		case t.skipped != "":
			res.Status, res.Detail = Skip, t.skipped
		default:
			res.Status = Pass
		}
	}()
	c.run(t)
	return res
}

// caps names capabilities as their String does.
func caps(names ...string) []runtime.Capability {
	var list []runtime.Capability
	for _, n := range names {
		for c := runtime.CapabilityCreate; c <= runtime.CapabilityPhoneTools; c++ {
			if c.String() == n {
				list = append(list, c)
			}
		}
	}
	if len(list) != len(names) {
		panic("conformance: unknown capability among " + strings.Join(names, ", "))
	}
	return list
}
