//go:build !windows

package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/openphone-host/openphone/host/obs"
	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/codes"
)

// fake is a Backend that answers what it was given.
type fake struct {
	mu      sync.Mutex
	info    Info // guarded by mu
	enabled map[string]bool
	drained time.Duration
	forced  bool
}

func (f *fake) Info() Info {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.info
}

func (f *fake) Shutdown(_ context.Context, d time.Duration, force bool) error {
	f.drained, f.forced = d, force
	return nil
}

func (f *fake) SetEnabled(_ context.Context, id string, on bool) error {
	f.enabled[id] = on
	return nil
}

func (f *fake) Checks(context.Context) []Check {
	return []Check{{Name: "listen", Result: OK, Message: "It listens."}}
}

func (f *fake) Config() (string, []Setting) {
	return "/x/config.toml", []Setting{{Key: "listen.address", Value: `"127.0.0.1:0"`, Origin: "default"}}
}

func (f *fake) Reload(context.Context) ([]string, []string, error) {
	return nil, nil, codes.New(codes.ConfigInvalid, "where", "line 3")
}
func (f *fake) Receipts(context.Context, string, string) ([]Receipt, error) { return nil, nil }
func (f *fake) OfferProject(context.Context, string) error                  { return nil }

func (f *fake) Pair(_ context.Context, label string, _ bool) (*Pairing, error) {
	return &Pairing{PhoneID: "p1", Backends: []PairedBackend{{Backend: "demo", URL: "ws://127.0.0.1:1/v1/demo/ws", Token: label}}}, nil
}

func (f *fake) Phones(context.Context) ([]Phone, error) { return []Phone{{ID: "p1", Label: "me"}}, nil }

func (f *fake) Revoke(_ context.Context, id string) (Phone, error) {
	return Phone{}, codes.New(codes.PhoneUnknown)
}

func serve(t *testing.T, o Options) (*Server, *Client) {
	t.Helper()
	s := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for {
		if _, err := os.Stat(address(o.Dir)); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatal(err)
		default:
			runtime.Gosched()
		}
	}
	c, err := Dial(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s, c
}

func TestCalls(t *testing.T) {
	logs := obs.New(obs.Options{Level: slog.LevelInfo})
	reg := obs.NewRegistry()
	hits := prometheus.NewCounter(prometheus.CounterOpts{Name: "openphone_test_hits_total"})
	reg.MustRegister(hits)
	hits.Inc()
	b := &fake{enabled: map[string]bool{}, info: Info{Ready: true, Listen: "127.0.0.1:7"}}
	s, c := serve(t, Options{Dir: t.TempDir(), Backend: b, Logs: logs, Metrics: reg})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	t.Run("status", func(t *testing.T) {
		r, err := c.GetStatus(ctx, &controlv1.GetStatusRequest{})
		if err != nil || !r.GetStatus().GetReady() || r.GetStatus().GetListen() != "127.0.0.1:7" || r.GetStatus().GetPid() != int64(os.Getpid()) {
			t.Errorf("%v, %v", r, err)
		}
	})
	t.Run("the socket is private", func(t *testing.T) {
		info, err := os.Stat(address(s.opt.Dir))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
	})
	t.Run("errors arrive with their code and parameters", func(t *testing.T) {
		_, err := c.ReloadConfig(ctx, &controlv1.ReloadConfigRequest{})
		if diff := cmp.Diff("config_invalid: The configuration is not valid: line 3.", err.Error()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if _, err := c.RevokePhone(ctx, &controlv1.RevokePhoneRequest{Id: "x"}); codes.Of(err) != codes.PhoneUnknown {
			t.Errorf("%v", err)
		}
		if _, err := c.RestartRuntime(ctx, &controlv1.RestartRuntimeRequest{Id: "x"}); codes.Of(err) != codes.RuntimeUnknown {
			t.Errorf("%v", err)
		}
		if _, err := c.ShowSession(ctx, &controlv1.ShowSessionRequest{Runtime: "x"}); codes.Of(err) != codes.RuntimeUnknown {
			t.Errorf("%v", err)
		}
	})
	t.Run("metrics are served here", func(t *testing.T) {
		r, err := c.ReadMetrics(ctx, &controlv1.ReadMetricsRequest{})
		if err != nil || !strings.Contains(r.GetText(), "openphone_test_hits_total 1") {
			t.Errorf("%v, %v", r, err)
		}
	})
	t.Run("levels change while running", func(t *testing.T) {
		l := logs.Logger("phone")
		l.Debug("hidden")
		if _, err := c.SetLogLevel(ctx, &controlv1.SetLogLevelRequest{Component: "phone", Level: "debug"}); err != nil {
			t.Fatal(err)
		}
		l.Debug("shown")
		if got := len(logs.Recent("phone")); got != 1 {
			t.Errorf("%d records", got)
		}
		if _, err := c.SetLogLevel(ctx, &controlv1.SetLogLevelRequest{Level: "loud"}); codes.Of(err) != codes.ParamsInvalid {
			t.Errorf("%v", err)
		}
	})
	t.Run("logs are followed", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		l := logs.Logger("runtimes").With(obs.KeyRuntime, "demo")
		l.Info("before")
		in, err := c.ReadLogs(ctx, &controlv1.ReadLogsRequest{Runtime: "demo", Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		m, err := in.Recv()
		if err != nil || len(m.GetRecords()) != 1 || m.GetRecords()[0].GetMessage() != "before" {
			t.Fatalf("%v, %v", m, err)
		}
		logs.Logger("runtimes").Info("about nobody")
		l.Warn("after", obs.KeyCode, "x")
		m, err = in.Recv()
		if err != nil || m.GetRecords()[0].GetMessage() != "after" || m.GetRecords()[0].GetLevel() != "warn" {
			t.Fatalf("%v, %v", m, err)
		}
	})
	t.Run("the status is watched", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		in, err := c.WatchStatus(ctx, &controlv1.WatchStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := in.Recv()
		if err != nil || m.GetStatus().GetSockets() != 0 {
			t.Fatalf("%v, %v", m, err)
		}
		s.Changed() // nothing did: nothing is sent
		b.mu.Lock()
		b.info.Sockets = 2
		b.mu.Unlock()
		s.Changed()
		m, err = in.Recv()
		if err != nil || m.GetStatus().GetSockets() != 2 {
			t.Fatalf("%v, %v", m, err)
		}
	})
	t.Run("shutdown", func(t *testing.T) {
		if _, err := c.Shutdown(ctx, &controlv1.ShutdownRequest{Force: true}); err != nil || b.drained != defaultDrain || !b.forced {
			t.Errorf("%v %v %v", err, b.drained, b.forced)
		}
	})
}

// TestEnd: whoever follows something is told the end, and the host does not wait for them.
func TestEnd(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), Backend: &fake{}, Logs: obs.New(obs.Options{})})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c, err := Dial(s.opt.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var status grpc.ServerStreamingClient[controlv1.WatchStatusResponse]
	for {
		if status, err = c.WatchStatus(context.Background(), &controlv1.WatchStatusRequest{}); err == nil {
			if _, err = status.Recv(); err == nil {
				break
			}
		}
		if codes.Of(err) != codes.HostAbsent { // it may not listen yet
			t.Fatal(err)
		}
	}
	logs, err := c.ReadLogs(context.Background(), &controlv1.ReadLogsRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	s.opt.Logs.Logger("x").Info("hello")
	if _, err := logs.Recv(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cancel()
	if err := <-done; err != nil || time.Since(began) > goodbye {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if _, err := status.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("status: %v", err)
	}
	if _, err := logs.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("logs: %v", err)
	}
}

func TestNoHost(t *testing.T) {
	c, err := Dial(t.TempDir())
	if err == nil {
		defer c.Close()
		_, err = c.GetStatus(context.Background(), &controlv1.GetStatusRequest{})
	}
	if codes.Of(err) != codes.HostAbsent {
		t.Errorf("%v", err)
	}
}

func TestAddressIsShort(t *testing.T) {
	long := filepath.Join("/tmp", strings.Repeat("x", 120))
	if a := address(long); len(a) > longestSocket || a != address(long) || a == address(long+"y") {
		t.Errorf("%s", a)
	}
	if a := address("/tmp/a"); a != "/tmp/a/control.sock" {
		t.Errorf("%s", a)
	}
}
