package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	hostv1 "github.com/openphone-host/openphone/proto/openphone/host/v1"
	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/serve"
)

const (
	startTimeout = 10 * time.Second
	keptOutput   = 64 << 10 // bytes of a plugin's stdout and stderr that are kept for a report
)

// process is one started plugin.
type process struct {
	*serve.Client
	dir    string // its data directory
	client *plugin.Client
	run    *procRunner
	proxy  *faultProxy // between us and the plugin, where a case asked for one
	state  *hostState
	events *watcher
	broker uint32

	endOnce sync.Once
}

// launch starts a plugin as the host does: own process group, a pipe on standard input, a private short socket directory,
// mutual TLS, and an environment of the few names it asked for.
func (k *kit) launch(ctx context.Context, dir string, wrap []string) (*process, error) {
	sockets, err := os.MkdirTemp(k.short, "s")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, state: k.stateOf(dir)}
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  serve.Handshake,
		VersionedPlugins: serve.VersionedPlugins(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Logger:           hclog.NewNullLogger(),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(serve.MaxMessage))},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			argv := append(append(append([]string{}, wrap...), k.o.Path), k.o.Args...)
			c := exec.Command(argv[0], argv[1:]...)
			c.Env = append(append(k.environment(), cmd.Env...), serve.EnvStdin+"=1", serve.EnvLogLevel+"=debug")
			if wrap == nil {
				c.Env = append(c.Env, serve.EnvParent+"="+strconv.Itoa(os.Getpid()))
			}
			c.Dir = k.work
			p.run = newRunner(c)
			if k.proxied {
				p.proxy = newFaultProxy(sockets)
				p.run.via = p.proxy
			}
			return p.run, nil
		},
	})
	if err := p.connect(); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

func (p *process) connect() error {
	cp, err := p.client.Client()
	if err != nil {
		return p.why(err)
	}
	raw, err := cp.Dispense(serve.PluginName)
	if err != nil {
		return p.why(err)
	}
	c, ok := raw.(*serve.Client)
	if !ok {
		return fmt.Errorf("dispensed %T", raw)
	}
	p.Client = c
	return nil
}

// why adds the plugin's last words to an error.
func (p *process) why(err error) error {
	if p.run == nil {
		return err
	}
	return fmt.Errorf("%w; stderr: %s", err, tail(p.run.errs.String(), 600))
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// environment is what every plugin gets besides the handshake: a home of its own, and what the caller passes on.
func (k *kit) environment() []string {
	env := []string{"HOME=" + k.home, "TMPDIR=" + k.tmp, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	if k.killFile != "" {
		env = append(env, serve.EnvKillFile+"="+k.killFile)
	}
	return append(env, k.o.Env...)
}

// ready opens Watch, configures and asks for health, in the order of the contract.
func (p *process) ready(ctx context.Context, k *kit) error {
	if err := p.watch(); err != nil {
		return err
	}
	p.broker = p.Broker.NextId()
	var wg sync.WaitGroup // AcceptAndServe ends with the broker
	wg.Go(func() {
		p.Broker.AcceptAndServe(p.broker, func(opts []grpc.ServerOption) *grpc.Server {
			s := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(serve.MaxMessage))...)
			hostv1.RegisterHostServiceServer(s, p.state)
			return s
		})
	})
	if err := p.configure(ctx, k); err != nil {
		return err
	}
	return p.untilServing(ctx, k)
}

func (p *process) configure(ctx context.Context, k *kit) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	q := &runtimev1.ConfigureRequest{
		InstanceId: "conform", InstanceSecret: "conformance-secret-0123456789abcdef", DataDir: p.dir,
		HostBrokerId: p.broker, HostFeatures: []string{"state", "attention"}, ProjectPath: k.o.Project,
	}
	if len(k.o.Config) > 0 {
		q.Config = &runtimev1.Payload{ContentType: "application/json", Data: k.o.Config}
	}
	_, err := p.Runtime.Configure(ctx, q)
	return err
}

// untilServing waits until the runtime behind the plugin is up, within the time a phone would wait.
func (p *process) untilServing(ctx context.Context, k *kit) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		h, err := p.Runtime.Health(ctx, &runtimev1.HealthRequest{})
		if err != nil {
			return err
		}
		switch h.GetStatus().GetCondition() {
		case runtimev1.Condition_CONDITION_READY:
			return nil
		case runtimev1.Condition_CONDITION_DEGRADED:
			if k.mute() {
				return nil
			}
			return fmt.Errorf("the runtime is degraded: %s", h.GetStatus().GetReason())
		case runtimev1.Condition_CONDITION_STARTING:
		default:
			return fmt.Errorf("the runtime is %v: %s", h.GetStatus().GetCondition(), h.GetStatus().GetReason())
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return errors.New("the runtime does not get ready")
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the whole process group at once and collects it.
func (p *process) Kill() {
	p.endOnce.Do(func() {
		if p.run != nil {
			p.run.killGroup()
		}
		p.client.Kill()
		if p.proxy != nil {
			p.proxy.close()
		}
		if p.events != nil {
			p.events.cancel()
		}
	})
}

// end shuts the plugin down as the host does.
func (p *process) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := p.Runtime.Shutdown(ctx, &runtimev1.ShutdownRequest{})
	p.Kill()
	return err
}

// procRunner implements go-plugin's runner.
type procRunner struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *teeReader
	errR  io.ReadCloser
	errs  *boundedBuffer
	done  chan struct{}
	once  sync.Once
	state *os.ProcessState
	via   *faultProxy // nil: straight to the plugin
}

func newRunner(cmd *exec.Cmd) *procRunner {
	ownGroup(cmd)
	return &procRunner{cmd: cmd, errs: &boundedBuffer{}, done: make(chan struct{})}
}

// Start implements runner.Runner.
func (r *procRunner) Start(context.Context) error {
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	errs, err := r.cmd.StderrPipe()
	if err != nil {
		return err
	}
	r.out = &teeReader{ReadCloser: out, kept: &boundedBuffer{}}
	r.errR = &teeReader{ReadCloser: errs, kept: r.errs}
	return r.cmd.Start()
}

// Wait implements runner.Runner; go-plugin calls it once, when both pipes have ended.
func (r *procRunner) Wait(context.Context) error {
	err := r.cmd.Wait()
	r.once.Do(func() { r.state = r.cmd.ProcessState; close(r.done) })
	return err
}

// Kill implements runner.Runner.
func (r *procRunner) Kill(context.Context) error { r.killGroup(); return nil }

func (r *procRunner) killGroup() {
	if r.cmd.Process == nil {
		return
	}
	select {
	case <-r.done: // collected: the number may be somebody else's
	default:
		killGroup(r.cmd.Process.Pid)
	}
	_ = r.stdin.Close()
}

// exited waits for the end of the process, and gives its exit status.
func (r *procRunner) exited(d time.Duration) (int, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.done:
		return r.state.ExitCode(), true
	case <-t.C:
		return 0, false
	}
}

func (r *procRunner) Stdout() io.ReadCloser { return r.out }
func (r *procRunner) Stderr() io.ReadCloser { return r.errR }
func (r *procRunner) Name() string          { return filepath.Base(r.cmd.Path) }
func (r *procRunner) ID() string {
	if r.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(r.cmd.Process.Pid)
}
func (r *procRunner) Diagnose(context.Context) string { return "" }

func (r *procRunner) PluginToHost(network, addr string) (string, string, error) {
	if r.via == nil {
		return network, addr, nil
	}
	return r.via.open(network, addr)
}

func (r *procRunner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

type teeReader struct {
	io.ReadCloser
	kept *boundedBuffer
}

func (t *teeReader) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	_, _ = t.kept.Write(b[:n])
	return n, err
}

// boundedBuffer keeps the beginning of what is written to it.
type boundedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := keptOutput - b.b.Len(); room > 0 {
		_, _ = b.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *boundedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
