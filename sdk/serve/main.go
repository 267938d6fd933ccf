package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// orphanGrace is how long the runtime may take to end when the host is gone: the process is away within 2 s.
	orphanGrace = 1500 * time.Millisecond
	// termGrace is the same when somebody asked politely.
	termGrace = 8 * time.Second
	// gcPercent trades a little time for memory: plugins are many and mostly idle. GOGC overrides it.
	gcPercent = 50
)

// Options for Run. Only Runtime is needed.
type Options struct {
	// Runtime is what the plugin serves.
	Runtime runtime.Runtime
	// Log takes the SDK's own records; nil is Logger().
	Log *slog.Logger
}

// Main serves r until the host is done with the process, and exits: 0 when it was told to end or its host is gone, 1 when
// it could not serve. It is the last thing a plugin's main does.
func Main(r runtime.Runtime) {
	if err := Run(context.Background(), Options{Runtime: r}); err != nil {
		fmt.Fprintln(stderr(), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run serves one runtime, once per process. It returns after the host has shut the connection, ctx has ended, SIGTERM
// came or the host is gone; in each case the runtime's Shutdown has been called first, if it was ever configured. A
// goroutine that reads standard input may stay behind, so a process that ran a plugin ends afterwards.
func Run(ctx context.Context, o Options) error {
	if os.Getenv(CookieKey) != CookieValue {
		return errors.New("this program is an OpenPhone plugin: it is started by openphone, not by hand")
	}
	log := o.Log
	if log == nil {
		log = Logger()
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer cancel()
	gone, leave := context.WithCancel(context.Background())
	defer leave()
	var background sync.WaitGroup // ends with the process, see above
	watchHost(gone, leave, &background)

	p := &Plugin{Runtime: o.Runtime, Log: log}
	p.onServer = func(g *grpc.Server) {
		forgetHandshake()
		context.AfterFunc(gone, func() { finish(p, g, log, orphanGrace, "host is gone") })
		context.AfterFunc(ctx, func() { finish(p, g, log, termGrace, "asked to end") })
	}
	secured, certificate, err := mutualTLS(os.Getenv(envClientCert))
	if err != nil {
		return err
	}
	if err := announce(&background, certificate); err != nil {
		return err
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake,
		TLSProvider:      func() (*tls.Config, error) { return secured, nil },
		VersionedPlugins: map[int]plugin.PluginSet{ProtocolVersion: {PluginName: p}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, ServerOptions(log)...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: stderr(), JSONFormat: true}),
	})
	p.end(orphanGrace)
	return nil
}

// finish ends the runtime's work and then the server, which lets Run return.
func finish(p *Plugin, g *grpc.Server, log *slog.Logger, grace time.Duration, why string) {
	log.Info("plugin ends", "reason", why)
	p.end(grace)
	g.Stop()
}

// end calls the runtime's Shutdown once, and waits no longer than grace for it.
func (p *Plugin) end(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		if err := p.server().end(ctx); err != nil {
			p.server().log.Error("shutdown failed", "error", err)
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// watchHost calls gone when standard input ends or the parent process does, as far as the environment says that either
// means the host.
func watchHost(ctx context.Context, gone func(), wg *sync.WaitGroup) {
	if os.Getenv(EnvStdin) == "1" {
		wg.Go(func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			gone()
		})
	}
	if pid, err := strconv.Atoi(os.Getenv(EnvParent)); err == nil && pid > 1 {
		wg.Go(func() {
			if waitParent(ctx, pid) {
				gone()
			}
		})
	}
}

// forgetHandshake takes what was meant for this process out of the environment its children inherit.
func forgetHandshake() {
	for _, name := range []string{
		CookieKey, EnvStdin, EnvParent, EnvLogLevel, plugin.EnvUnixSocketDir, plugin.EnvUnixSocketGroup,
		envClientCert, "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT",
	} {
		_ = os.Unsetenv(name)
	}
}
