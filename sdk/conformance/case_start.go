package conformance

import (
	"runtime"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
)

// startCases are about the process.
var startCases = []testCase{
	{group: "start", name: "handshake", run: func(t *T) {
		began := time.Now()
		t.bare(t.dataDir())
		if d := time.Since(began); d > startTimeout {
			t.Errorf("the handshake took %v, at most %v is allowed", d, startTimeout)
		}
	}},
	{group: "start", name: "describe has no side effects", run: func(t *T) {
		dir := t.dataDir()
		home, work, tmp := t.home, t.work, t.tmp // others may have left files there, rightly
		t.home, t.work, t.tmp = t.dataDir(), t.dataDir(), t.dataDir()
		defer func() { t.home, t.work, t.tmp = home, work, tmp }()
		p := t.bare(dir)
		began := time.Now()
		_, err := p.Runtime.Describe(t.timed(5*time.Second), &runtimev1.DescribeRequest{})
		t.must(err, "Describe")
		if d := time.Since(began); d > time.Second {
			t.Errorf("Describe took %v, at most 1s is allowed", d)
		}
		if list := files(dir); len(list) > 0 {
			t.Errorf("files in the data directory: %v", list)
		}
		if n := len(files(t.home)) + len(files(t.work)) + len(files(t.tmp)); n > 0 {
			t.Errorf("files appeared: home %v, work %v, temporary %v", files(t.home), files(t.work), files(t.tmp))
		}
		if c := children(p.run.cmd.Process.Pid); len(c) > 0 {
			t.Errorf("%d child processes were started", len(c))
		}
	}},
	{group: "start", name: "stdout holds the handshake alone", run: func(t *T) {
		p := t.start()
		t.must(p.end(t.ctx), "Shutdown")
		if out := p.run.out.kept.String(); strings.Count(out, "\n") != 1 {
			t.Errorf("standard output is %q, want one line", tail(out, 300))
		}
	}},
	{group: "start", name: "ends with standard input", run: func(t *T) {
		p := t.start()
		_ = p.run.stdin.Close()
		t.wantExit(p, 2*time.Second)
	}},
	{group: "start", name: "ends with its parent", run: func(t *T) {
		if runtime.GOOS == "windows" {
			t.skip("needs a shell")
		}
		// The shell is the plugin's parent and is killed as a host may be; the pipe ends at the same moment.
		p, err := t.launch(t.ctx, t.dataDir(), []string{"/bin/sh", "-c", `exec 3<&0; OPENPHONE_PLUGIN_PARENT=$$ "$@" <&3 3<&- & echo "$!" >&2; wait`, "sh"})
		t.must(err, "start")
		t.cleanup(p.Kill)
		t.must(p.ready(t.ctx, t.kit), "getting ready")
		t.must(p.run.cmd.Process.Kill(), "killing the parent")
		_ = p.run.stdin.Close()
		// Both pipes end with the last process that holds them, and only then is the parent collected.
		if _, ok := p.run.exited(2 * time.Second); !ok {
			t.Errorf("the plugin still runs 2s after its parent's death")
		}
	}},
	{group: "start", name: "ends when asked to", run: func(t *T) {
		p := t.start()
		if !terminate(p.run.cmd.Process.Pid) {
			t.skip("no SIGTERM here")
		}
		t.wantExit(p, 10*time.Second)
	}},
	{group: "start", name: "configure twice changes nothing", run: func(t *T) {
		p := t.start()
		t.must(p.configure(t.ctx, t.kit), "Configure again")
		t.alive(p)
	}},
	{group: "start", name: "a second watch ends the first", run: func(t *T) {
		p := t.start()
		first := p.events
		t.must(p.watch(), "Watch again")
		if _, _, err := first.within(5*time.Second, len(first.all()), func(*runtimev1.Event) bool { return false }); err == nil || !first.over() {
			t.Errorf("the first stream goes on")
		}
		t.alive(p)
	}},
}

func (w *watcher) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// wantExit waits for the end of a process, with status 0.
func (t *T) wantExit(p *process, d time.Duration) {
	code, ok := p.run.exited(d)
	switch {
	case !ok:
		t.Errorf("the plugin still runs after %v", d)
	case code != 0:
		t.Errorf("the plugin ended with status %d, want 0; stderr: %s", code, tail(p.run.errs.String(), 400))
	}
}

// describeCases are about Description and Status.
var describeCases = []testCase{
	{group: "describe", name: "stable across two starts", run: func(t *T) {
		p := t.bare(t.dataDir())
		d, err := p.Runtime.Describe(t.fast(), &runtimev1.DescribeRequest{})
		t.must(err, "Describe")
		if !proto.Equal(d.GetDescription(), t.raw) {
			t.Errorf("another start gave another description")
		}
	}},
	{group: "describe", name: "names and texts", run: checkNames},
	{group: "describe", name: "schemas are JSON Schema 2020-12", run: checkSchemas},
	{group: "describe", name: "capabilities are what answers", run: checkCapabilities},
	{group: "describe", name: "status stays within the description", run: checkStatus},
	{group: "describe", name: "environment is what was asked for", run: func(t *T) {
		for _, e := range t.description.Environment {
			if e == "" || strings.ContainsAny(e, "= \t") || e == "*" || strings.HasPrefix(e, "OPENPHONE_PLUGIN") {
				t.Errorf("environment names %q", e)
			}
			if strings.Contains(strings.TrimSuffix(e, "*"), "*") || strings.HasSuffix(e, "*") && !strings.HasSuffix(e, "_*") {
				t.Errorf("environment names %q: a prefix is written NAME_*", e)
			}
		}
	}},
}
