package runtimes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/openphone-host/openphone/host/runtimes/hclogslog"
	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// Deadline classes of the contract; see runtime.proto.
const (
	classFast     = 2 * time.Second
	classIO       = 10 * time.Second
	classSettings = 40 * time.Second
)

const (
	startTimeout = 10 * time.Second // from exec to the handshake line
	exitGrace    = 2 * time.Second  // between the end of Shutdown and the kill
)

// executable is a verified program.
type executable struct {
	source string // where it was found
	path   string // the host's own copy: what is started
	sum    string
	desc   *runtime.Description
}

// generation is one plugin process, from exec to collection.
type generation struct {
	n      uint64
	exe    executable
	proc   *process
	client *plugin.Client
	rpc    *serve.Client
	stderr *stderrLog
	log    *slog.Logger
	desc   *runtime.Description

	settings    Settings // in force
	environment []string // names of what it was given
	brokerID    uint32

	ctx    context.Context // ends with the process; calls that belong to the process alone use it
	cancel context.CancelFunc
	watch  grpc.ServerStreamingClient[runtimev1.WatchResponse]
	host   atomic.Pointer[grpc.Server]
	wg     sync.WaitGroup

	suspect  chan struct{} // kicked when a call ran into its deadline
	lost     chan struct{} // closed when the event stream has ended
	downSent chan struct{} // closed when the observer was told that the process is gone
	readyAt  time.Time
	stopping atomic.Bool // its end is wanted
}

// spawn starts an executable and says hello; nothing is configured yet.
func spawn(ctx context.Context, exe executable, env []string, socketDir string, log *slog.Logger, swept func(int, int)) (*generation, error) {
	g := &generation{
		exe: exe, log: log, stderr: newStderrLog(log),
		suspect: make(chan struct{}, 1), lost: make(chan struct{}), downSent: make(chan struct{}),
	}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var running atomic.Pointer[process]
	secured, shown, err := mutualTLS()
	if err != nil {
		g.cancel()
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	env = append(append([]string(nil), env...), shown)
	cfg := &plugin.ClientConfig{
		HandshakeConfig:  serve.Handshake,
		VersionedPlugins: serve.VersionedPlugins(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        secured,
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Logger:           hclogslog.New(log),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: socketDir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			g.proc = newProcess(exe.path, append(env, cmd.Env...), g.stderr, g.keeps, swept)
			running.Store(g.proc)
			return g.proc, nil
		},
	}
	g.client = plugin.NewClient(cfg)
	// go-plugin's start knows no context; the end of ours ends the process, and with it the start.
	unhook := context.AfterFunc(ctx, func() {
		if p := running.Load(); p != nil {
			_ = p.Kill(context.Background())
		}
	})
	defer unhook()
	if _, err := g.client.Start(); err != nil {
		g.destroy()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, startError(err)
	}
	raw, err := dispense(g.client)
	if err != nil {
		g.destroy()
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	g.rpc = raw
	ctx, done := context.WithTimeout(ctx, classFast)
	defer done()
	resp, err := g.rpc.Runtime.Describe(ctx, &runtimev1.DescribeRequest{})
	if err != nil {
		g.destroy()
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	g.desc = protomap.FromDescription(resp.GetDescription())
	if g.desc == nil {
		g.destroy()
		return nil, codes.New(codes.PluginIncompatible).Because(errors.New("it describes nothing"))
	}
	return g, nil
}

// startError tells a plugin of another contract from one that cannot start. go-plugin has only words for it.
func startError(err error) error {
	if strings.HasPrefix(strings.ToLower(err.Error()), "incompatible ") {
		return codes.New(codes.PluginIncompatible).Because(err)
	}
	return codes.New(codes.PluginStartFailed).Because(err)
}

func dispense(c *plugin.Client) (*serve.Client, error) {
	conn, err := c.Client()
	if err != nil {
		return nil, err
	}
	raw, err := conn.Dispense(serve.PluginName)
	if err != nil {
		return nil, err
	}
	client, ok := raw.(*serve.Client)
	if !ok {
		return nil, fmt.Errorf("dispensed %T", raw)
	}
	return client, nil
}

// configure opens the event stream, offers HostService and hands over the settings, in that order, and asks for health.
func (g *generation) configure(ctx context.Context, req *runtime.ConfigureRequest, host *hostService) (*runtime.Status, error) {
	watch, err := g.rpc.Runtime.Watch(g.ctx, &runtimev1.WatchRequest{})
	if err != nil {
		return nil, rpcerr.Decode(err)
	}
	g.watch = watch
	g.brokerID = g.rpc.Broker.NextId()
	g.wg.Go(func() {
		g.rpc.Broker.AcceptAndServe(g.brokerID, func(opts []grpc.ServerOption) *grpc.Server {
			s := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(serve.MaxMessage), grpc.MaxSendMsgSize(serve.MaxMessage))...)
			host.register(s)
			g.host.Store(s)
			return s
		})
	})
	if err := g.reconfigure(ctx, req); err != nil {
		return nil, err
	}
	return g.health(ctx, nil)
}

// reconfigure hands over settings; on error the former ones stay.
func (g *generation) reconfigure(ctx context.Context, req *runtime.ConfigureRequest) error {
	r := *req
	r.HostBrokerID = g.brokerID
	ctx, cancel := context.WithTimeout(ctx, classIO)
	defer cancel()
	if _, err := g.rpc.Runtime.Configure(ctx, protomap.ToConfigureRequest(&r)); err != nil {
		return rpcerr.Decode(err)
	}
	return nil
}

func (g *generation) health(ctx context.Context, maxAge *time.Duration) (*runtime.Status, error) {
	class := classFast
	if maxAge != nil {
		class = classIO
	}
	ctx, cancel := context.WithTimeout(ctx, class)
	defer cancel()
	resp, err := g.rpc.Runtime.Health(ctx, protomap.ToHealthRequest(&runtime.HealthRequest{MaxAge: maxAge}))
	if err != nil {
		return nil, g.failed(err)
	}
	s := protomap.FromStatus(resp.GetStatus())
	if s == nil {
		s = &runtime.Status{Condition: runtime.ConditionUnavailable, Reason: codes.ReplyInvalid}
	}
	return s, nil
}

// reconcile asks what became of the open runs. A plugin without the capability cannot know: every run is unspecified.
func (g *generation) reconcile(ctx context.Context, r *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, classSettings)
	defer cancel()
	resp, err := g.rpc.Runtime.Reconcile(ctx, protomap.ToReconcileRequest(r))
	if err != nil {
		e := g.failed(err)
		if e.Code != codes.MethodUnsupported {
			return nil, e
		}
		out := &runtime.ReconcileResponse{}
		for _, run := range r.Runs {
			out.Runs = append(out.Runs, runtime.RunState{Session: run.Session, RunID: run.RunID, NativeRunID: run.NativeRunID})
		}
		return out, nil
	}
	return protomap.FromReconcileResponse(resp), nil
}

// failed decodes an error and remembers a missed deadline, so that the owner looks whether the process still lives.
func (g *generation) failed(err error) *codes.Error {
	e := rpcerr.Decode(err)
	if e.Code == codes.DeadlineExceeded {
		select {
		case g.suspect <- struct{}{}:
		default:
		}
	}
	return e
}

// gone is closed when the process has ended and was collected.
func (g *generation) gone() <-chan struct{} { return g.proc.done }

// shutdown asks the plugin to end, waits, and kills what does not listen; hurry ends the patience. It returns when the
// process is gone.
func (g *generation) shutdown(hurry context.Context) {
	ctx, cancel := context.WithTimeout(hurry, classIO) // not of the caller: that one may be over
	defer cancel()
	unhook := context.AfterFunc(g.ctx, cancel)
	_, _ = g.rpc.Runtime.Shutdown(ctx, &runtimev1.ShutdownRequest{})
	unhook()
	g.wg.Go(g.client.Kill) // asks once more and collects; it has no deadline of its own
	ctx, cancel = context.WithTimeout(hurry, exitGrace)
	defer cancel()
	// A plugin that does not listen to go-plugin sees its standard input end.
	hint := time.AfterFunc(exitGrace/2, g.proc.closeStdin)
	defer hint.Stop()
	select {
	case <-g.gone():
	case <-ctx.Done():
		g.log.Warn("plugin did not end in time and is killed")
		_ = g.proc.Kill(context.Background())
		<-g.gone()
	}
	g.release()
}

// kill ends the process group at once and waits for it.
func (g *generation) kill() {
	_ = g.proc.Kill(context.Background())
	<-g.gone()
	g.wg.Go(g.client.Kill)
	g.release()
}

// destroy undoes a start that failed at any point.
func (g *generation) destroy() {
	g.cancel()
	if g.proc != nil && g.proc.pid() != 0 {
		g.kill()
		g.proc.collect()
	}
	g.wg.Wait()
}

func (g *generation) release() {
	g.cancel()
	if s := g.host.Load(); s != nil {
		s.Stop()
	}
}

// collect waits for everything that belonged to the process; it must be gone.
func (g *generation) collect() {
	g.wg.Wait()
	g.proc.collect()
}

// keeps reports that a program may outlive the plugin. An executable that is only asked who it is keeps nothing.
func (g *generation) keeps(program string) bool {
	return g.exe.desc != nil && slices.Contains(g.exe.desc.KeptPrograms, program)
}

// exitText is how the process ended, for the log.
func (g *generation) exitText() string {
	if s := g.proc.exit(); s != nil {
		return s.String()
	}
	return "running"
}
