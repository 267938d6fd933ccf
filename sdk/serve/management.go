package serve

import (
	"context"
	"errors"
	"io"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// management implements ManagementService.
type management struct {
	runtimev1.UnimplementedManagementServiceServer
	s *server
}

func (m *management) Call(ctx context.Context, in *runtimev1.CallRequest) (*runtimev1.CallResponse, error) {
	call := func() (*runtimev1.CallResponse, error) {
		return optional(ctx, m.s, in, protomap.FromCallRequest, runtime.Manager.Call, protomap.ToCallResponse)
	}
	if _, ok := m.s.r.(runtime.Manager); !ok {
		return call()
	}
	method, err := m.s.method(in.GetMethod())
	switch {
	case err != nil:
		return nil, err
	case method.Scope == runtime.MethodScopeRead:
		return call()
	}
	return changing(m.s, call)
}

// method finds the declaration of a method; only declared ones reach the runtime.
func (s *server) method(name string) (*runtime.Method, error) {
	d, err := s.describe()
	if err != nil {
		return nil, err
	}
	for i := range d.Methods {
		if d.Methods[i].Name == name {
			return &d.Methods[i], nil
		}
	}
	return nil, codes.New(codes.MethodUnknown)
}

// channels implements ChannelService.
type channels struct {
	runtimev1.UnimplementedChannelServiceServer
	s *server
}

// maxFrame is the contract's bound of one frame.
const maxFrame = 8 << 20

func (c *channels) OpenChannel(stream runtimev1.ChannelService_OpenChannelServer) error {
	x, ok := c.s.r.(runtime.FrameCarrier)
	if !ok {
		return unsupported()
	}
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return badParams()
	}
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open.GetChannelId() == "" || len(open.GetChannelId()) > maxIDLength {
		return badParams()
	}
	// The door is only asked, not held: a channel lives as long as its phone.
	if err := c.s.door.enter(); err != nil {
		return err
	}
	c.s.door.leave()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(c.s.life, cancel)()
	return x.OpenChannel(ctx, protomap.FromChannelOpen(open), &channel{stream})
}

// channel is one socket, seen from the runtime.
type channel struct {
	stream runtimev1.ChannelService_OpenChannelServer
}

// Recv implements runtime.Channel.
func (c *channel) Recv() (*runtime.OpenChannelRequest, error) {
	for {
		m, err := c.stream.Recv()
		if err != nil {
			return nil, err
		}
		switch k := m.GetKind().(type) {
		case *runtimev1.OpenChannelRequest_Open:
			return nil, badParams()
		case *runtimev1.OpenChannelRequest_Frame:
			if len(k.Frame.GetData()) > maxFrame {
				return nil, codes.New(codes.FrameTooLarge)
			}
		case nil:
			continue // a kind this version does not know
		}
		return protomap.FromOpenChannelRequest(m), nil
	}
}

// Send implements runtime.Channel.
func (c *channel) Send(r *runtime.OpenChannelResponse) error {
	if r.Frame != nil && len(r.Frame.Data) > maxFrame {
		return codes.New(codes.FrameTooLarge)
	}
	m := protomap.ToOpenChannelResponse(r)
	if r.Frame == nil {
		scrub(m)
	}
	return c.stream.Send(m)
}
