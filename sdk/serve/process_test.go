package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// TestMain lets the test binary be the plugin.
func TestMain(m *testing.M) {
	switch os.Getenv("SERVE_TEST_ROLE") {
	case "":
		os.Exit(m.Run())
	case "noisy":
		fmt.Println("printed before Serve")
		fmt.Println("1|1|not|a|handshake")
		serve.Main(&teller{&fake{}})
	case "stuck": // Shutdown never comes back
		serve.Main(&fake{shutdown: func(context.Context) error { <-make(chan struct{}); return nil }})
	}
}

// teller reports its own environment as a history.
type teller struct{ *fake }

func (*teller) ReadHistory(context.Context, *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	fmt.Println("printed in a call")
	env := runtime.Message{MessageID: "env"}
	for _, e := range os.Environ() {
		env.Parts = append(env.Parts, runtime.Part{Text: e})
	}
	return &runtime.ReadHistoryResponse{Messages: []runtime.Message{env}}, nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts the test binary as a plugin with go-plugin's own runner.
func launch(t *testing.T, role string, env ...string) (*serve.Client, *plugin.Client, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"SERVE_TEST_ROLE=" + role, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, env...)
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: serve.Handshake, VersionedPlugins: serve.VersionedPlugins(), AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS: true, SkipHostEnv: true, Cmd: cmd, StartTimeout: 10 * time.Second, Stderr: log,
		Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
	})
	t.Cleanup(c.Kill)
	cp, err := c.Client()
	if err != nil {
		t.Fatalf("start: %v; stderr: %s", err, log)
	}
	raw, err := cp.Dispense(serve.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(*serve.Client), c, log
}

func TestTextOnStandardOutputGoesToTheLog(t *testing.T) {
	t.Parallel()
	c, _, log := launch(t, "noisy")
	if _, err := c.Runtime.Describe(t.Context(), &runtimev1.DescribeRequest{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "printed before Serve") {
		t.Errorf("the log has %q, want what was printed before Serve", log)
	}
}

func TestChildrenInheritNothingOfTheHandshake(t *testing.T) {
	t.Parallel()
	c, _, _ := launch(t, "noisy", serve.EnvLogLevel+"=debug")
	r, err := c.Conversations.ReadHistory(t.Context(), &runtimev1.ReadHistoryRequest{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.GetMessages()[0].GetParts() {
		name, _, _ := strings.Cut(p.GetText(), "=")
		if strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "OPENPHONE_PLUGIN") {
			t.Errorf("the environment still has %s", name)
		}
	}
}

func TestAForeignParentIsNobodysParent(t *testing.T) {
	t.Parallel()
	c, _, _ := launch(t, "noisy", serve.EnvParent+"=2147483000")
	if _, err := c.Runtime.Health(t.Context(), &runtimev1.HealthRequest{}); err != nil {
		t.Errorf("Health: %v", err)
	}
}

func TestStuckShutdownDoesNotHoldTheProcess(t *testing.T) {
	t.Parallel()
	c, client, _ := launch(t, "stuck")
	if err := configure(t, c); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	client.Kill() // go-plugin's end: the server stops, and the SDK gives the runtime a bounded time
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("the process ended after %v", d)
	}
	if !client.Exited() {
		t.Error("the process still runs")
	}
}

func configure(t *testing.T, c *serve.Client) error {
	_, err := c.Runtime.Configure(t.Context(), &runtimev1.ConfigureRequest{InstanceId: "i", DataDir: t.TempDir()})
	return err
}

func TestStartedByHandItSaysSo(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"SERVE_TEST_ROLE=noisy"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err == nil || !strings.Contains(errs.String(), "started by openphone") {
		t.Errorf("Run = %v, %q, want a failure that says how plugins are started", err, errs.String())
	}
}
