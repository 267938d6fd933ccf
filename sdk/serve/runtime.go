package serve

import (
	"context"
	"slices"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/hostclient"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// unsupported answers a call whose capability is absent.
func unsupported() error { return codes.New(codes.MethodUnsupported) }

// Describe implements RuntimeService.
func (s *server) Describe(context.Context, *runtimev1.DescribeRequest) (*runtimev1.DescribeResponse, error) {
	d, err := s.describe()
	if err != nil {
		return nil, err
	}
	return &runtimev1.DescribeResponse{Description: protomap.ToDescription(d)}, nil
}

// Configure implements RuntimeService. The connection to the host is made once per process.
func (s *server) Configure(ctx context.Context, in *runtimev1.ConfigureRequest) (*runtimev1.ConfigureResponse, error) {
	if err := s.openSink(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	host := s.given
	if host == nil {
		if s.host == nil {
			s.host = hostclient.New(s.broker, in.GetHostBrokerId())
		}
		host = s.host
	}
	s.mu.Unlock()
	if err := s.r.Configure(ctx, protomap.FromConfigureRequest(in), host); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.configured = true
	s.mu.Unlock()
	return &runtimev1.ConfigureResponse{}, nil
}

// Health implements RuntimeService. Capabilities and methods a runtime does not narrow are all it was built with.
func (s *server) Health(ctx context.Context, in *runtimev1.HealthRequest) (*runtimev1.HealthResponse, error) {
	st, err := s.r.Health(ctx, protomap.FromHealthRequest(in))
	if err != nil {
		return nil, err
	}
	return &runtimev1.HealthResponse{Status: protomap.ToStatus(s.complete(st))}, nil
}

// complete narrows a status to what the plugin was built to do.
func (s *server) complete(st *runtime.Status) *runtime.Status {
	if st == nil {
		return nil
	}
	d, err := s.describe()
	if err != nil {
		return st
	}
	c := *st
	if c.Capabilities == nil {
		c.Capabilities = d.Capabilities
	} else {
		c.Capabilities = slices.DeleteFunc(slices.Clone(c.Capabilities), func(x runtime.Capability) bool {
			return !runtime.Has(d.Capabilities, x)
		})
	}
	if c.Methods == nil {
		for _, m := range d.Methods {
			c.Methods = append(c.Methods, m.Name)
		}
	}
	return &c
}

// Watch implements RuntimeService.
func (s *server) Watch(_ *runtimev1.WatchRequest, stream runtimev1.RuntimeService_WatchServer) error {
	if err := s.openSink(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	err := s.sink.stream(ctx, stream.Send)
	if s.life.Err() != nil {
		return nil // the process is ending, and the host knows
	}
	return err
}

// openSink gives the runtime its sink, once.
func (s *server) openSink() error {
	s.watching.Do(func() { s.watchErr = s.r.Watch(s.life, &faultSink{next: &statusSink{s}}) })
	return s.watchErr
}

// statusSink completes status events as Health does.
type statusSink struct{ s *server }

func (x *statusSink) Seq() uint64 { return x.s.sink.Seq() }

func (x *statusSink) Emit(e runtime.Event) {
	if e.StatusChanged != nil {
		e.StatusChanged = x.s.complete(e.StatusChanged)
	}
	x.s.sink.Emit(e)
}

// Reconcile implements RuntimeService.
func (s *server) Reconcile(ctx context.Context, in *runtimev1.ReconcileRequest) (*runtimev1.ReconcileResponse, error) {
	return optional(ctx, s, in, protomap.FromReconcileRequest, runtime.Reconciler.Reconcile, protomap.ToReconcileResponse)
}

// Drain implements RuntimeService: the door is shut before the runtime counts.
func (s *server) Drain(ctx context.Context, in *runtimev1.DrainRequest) (*runtimev1.DrainResponse, error) {
	x, ok := s.r.(runtime.Drainer)
	if !ok {
		return nil, unsupported()
	}
	inside := s.door.set(!in.GetReopen())
	resp, err := x.Drain(ctx, protomap.FromDrainRequest(in))
	if err != nil {
		return nil, err
	}
	out := protomap.ToDrainResponse(resp)
	out.OtherWork += inside + s.runs.held()
	return out, nil
}

// Shutdown implements RuntimeService.
func (s *server) Shutdown(ctx context.Context, _ *runtimev1.ShutdownRequest) (*runtimev1.ShutdownResponse, error) {
	s.door.set(true)
	if err := s.end(ctx); err != nil {
		return nil, err
	}
	return &runtimev1.ShutdownResponse{}, nil
}

// optional carries one unary call of an optional group I to the runtime.
func optional[I, PQ, Q, R, PR any](ctx context.Context, s *server, in *PQ, from func(*PQ) *Q, call func(I, context.Context, *Q) (*R, error), to func(*R) *PR) (*PR, error) {
	x, ok := s.r.(I)
	if !ok {
		return nil, unsupported()
	}
	resp, err := call(x, ctx, from(in))
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return new(PR), nil
	}
	return to(resp), nil
}
