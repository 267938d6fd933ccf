package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/hostclient"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Plugin is a plugin's half of the go-plugin plugin: it serves one Runtime. Main uses it; tests may serve it in their
// own process with go-plugin's TestPluginGRPCConn.
type Plugin struct {
	plugin.NetRPCUnsupportedPlugin
	// Runtime is what is served.
	Runtime runtime.Runtime
	// Log takes what goes wrong; nil discards.
	Log *slog.Logger
	// Host replaces the HostService of the broker, for tests without one.
	Host runtime.Host

	once sync.Once
	srv  *server
	// onServer is told the gRPC server once the services are registered.
	onServer func(*grpc.Server)
}

var _ plugin.GRPCPlugin = (*Plugin)(nil)

// GRPCClient gives a *Client, so that one plugin set serves both halves of a test.
func (p *Plugin) GRPCClient(ctx context.Context, b *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return (&ClientPlugin{}).GRPCClient(ctx, b, c)
}

// GRPCServer registers the services.
func (p *Plugin) GRPCServer(b *plugin.GRPCBroker, g *grpc.Server) error {
	s := p.server()
	s.broker = b
	runtimev1.RegisterRuntimeServiceServer(g, s)
	runtimev1.RegisterConversationServiceServer(g, &conversations{s: s})
	runtimev1.RegisterManagementServiceServer(g, &management{s: s})
	runtimev1.RegisterChannelServiceServer(g, &channels{s: s})
	if p.onServer != nil {
		p.onServer(g)
	}
	return nil
}

// server makes the one server of this plugin and opens the runtime's event sink.
func (p *Plugin) server() *server {
	p.once.Do(func() {
		log := p.Log
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		p.srv = newServer(p.Runtime, log)
		p.srv.given = p.Host
	})
	return p.srv
}

// Stop ends the runtime's work as the end of the process does.
func (p *Plugin) Stop() { p.end(orphanGrace) }

// ServerOptions are the gRPC options every plugin server needs: the contract's message size, coded errors, panics
// turned into errors, and answers that always fit on the wire. log may be nil.
func ServerOptions(log *slog.Logger) []grpc.ServerOption {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.ChainUnaryInterceptor(unaryGuard(log)),
		grpc.ChainStreamInterceptor(streamGuard(log)),
	}
}

func unaryGuard(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if v := recover(); v != nil {
				resp, err = nil, rpcerr.Encode(panicked(log, info.FullMethod, v))
			}
		}()
		if err := check(req); err != nil {
			return nil, rpcerr.Encode(err)
		}
		resp, err = next(ctx, req)
		if err != nil {
			logFault(log, info.FullMethod, err)
			return nil, rpcerr.Encode(err)
		}
		if m, ok := resp.(proto.Message); ok {
			scrub(m)
		}
		return resp, nil
	}
}

func streamGuard(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = rpcerr.Encode(panicked(log, info.FullMethod, v))
			}
		}()
		if err := next(srv, &checkedStream{ss}); err != nil {
			logFault(log, info.FullMethod, err)
			return rpcerr.Encode(err)
		}
		return nil
	}
}

// checkedStream refuses malformed requests of streaming calls as the unary guard does.
type checkedStream struct{ grpc.ServerStream }

func (c *checkedStream) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return check(m)
}

func panicked(log *slog.Logger, method string, v any) error {
	log.Error("panic in a call", "method", method, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return codes.New(codes.Internal)
}

// logFault writes down what the caller is not told: an error without a code is a fault of the plugin.
func logFault(log *slog.Logger, method string, err error) {
	if codes.As(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	log.Error("call failed without a code", "method", method, "error", err)
}

// server implements the services over one Runtime.
type server struct {
	runtimev1.UnimplementedRuntimeServiceServer
	r      runtime.Runtime
	log    *slog.Logger
	sink   *sink
	runs   *runs
	door   admission
	broker *plugin.GRPCBroker

	life context.Context // ends with the process's work
	stop context.CancelFunc

	describe func() (*runtime.Description, error) // asked once, kept

	watching sync.Once
	watchErr error

	mu         sync.Mutex
	given      runtime.Host       // instead of host, in tests
	host       *hostclient.Client // made with the first Configure
	configured bool
}

func newServer(r runtime.Runtime, log *slog.Logger) *server {
	s := &server{r: r, log: log, sink: newSink(log), runs: newRuns(r)}
	s.life, s.stop = context.WithCancel(context.Background())
	s.describe = sync.OnceValues(func() (*runtime.Description, error) {
		ctx, cancel := context.WithTimeout(s.life, 2*time.Second)
		defer cancel()
		d, err := r.Describe(ctx)
		if err != nil {
			return nil, err
		}
		c := *d
		c.Capabilities = runtime.Capabilities(r)
		return &c, nil
	})
	return s
}

// end asks the runtime to finish and lets every stream go. Bounded by ctx.
func (s *server) end(ctx context.Context) error {
	s.mu.Lock()
	configured, host := s.configured, s.host
	s.configured, s.host = false, nil
	s.mu.Unlock()
	var err error
	if configured {
		err = s.r.Shutdown(ctx)
	}
	s.stop()
	s.sink.close()
	if host != nil {
		_ = host.Close()
	}
	return err
}
