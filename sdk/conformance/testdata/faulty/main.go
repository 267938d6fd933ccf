// Command faulty is the demo with one fault, named by its argument. The conformance kit must find each of them.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/openphone-host/openphone/plugins/demo/agent"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

type faulty struct {
	*agent.Agent
	fault string
}

func main() {
	f := &faulty{Agent: agent.New(agent.Options{}), fault: os.Args[1]}
	if f.fault == "stay" { // nobody watches the host
		_ = os.Unsetenv(serve.EnvStdin)
		_ = os.Unsetenv(serve.EnvParent)
		signal.Ignore(syscall.SIGTERM)
	}
	serve.Main(f)
}

func (f *faulty) Describe(ctx context.Context) (*runtime.Description, error) {
	d, err := f.Agent.Describe(ctx)
	switch f.fault {
	case "side-effect":
		_ = os.WriteFile(filepath.Join(os.Getenv("HOME"), "trace"), nil, 0o600)
	case "ghost":
		d.Phrases = append(d.Phrases, runtime.Phrase{Code: "other.code", Text: "Not ours."})
	}
	return d, err
}

func (f *faulty) Watch(ctx context.Context, s runtime.Sink) error {
	return f.Agent.Watch(ctx, &sink{s, f.fault})
}

type sink struct {
	runtime.Sink
	fault string
}

func (s *sink) Emit(e runtime.Event) {
	switch {
	case s.fault == "trim" && e.Text != nil:
		e.Text = &runtime.TextChunk{PartID: e.Text.PartID, Text: strings.TrimSpace(e.Text.Text)}
	case s.fault == "two-ends" && e.RunEnded != nil:
		s.Sink.Emit(e)
	}
	s.Sink.Emit(e)
}

func (f *faulty) PrepareRun(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	p, err := f.Agent.PrepareRun(ctx, r)
	if err == nil && f.fault == "eager" {
		_, err = f.Agent.CommitRun(ctx, &runtime.CommitRunRequest{RunID: r.RunID})
	}
	return p, err
}

func (f *faulty) StopRun(ctx context.Context, r *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	if f.fault == "no-cancel" {
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
	}
	return f.Agent.StopRun(ctx, r)
}

func (f *faulty) Reconcile(ctx context.Context, r *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
	if f.fault != "amnesia" {
		return f.Agent.Reconcile(ctx, r)
	}
	out := &runtime.ReconcileResponse{}
	for _, o := range r.Runs {
		out.Runs = append(out.Runs, runtime.RunState{Session: o.Session, RunID: o.RunID, Phase: runtime.RunPhaseNeverSeen})
	}
	return out, nil
}

func (f *faulty) ReadHistory(ctx context.Context, r *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	page, err := f.Agent.ReadHistory(ctx, r)
	switch {
	case f.fault == "any-cursor" && err != nil:
		return &runtime.ReadHistoryResponse{}, nil
	case f.fault == "overlap" && err == nil && r.Cursor != "" && len(page.Messages) > 0:
		page.Messages = append(page.Messages, page.Messages[len(page.Messages)-1])
	case f.fault == "crash" && r.Cursor == "zzz":
		os.Exit(3)
	}
	return page, err
}
