package runtimes

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxFrame is the largest frame of a channel, in bytes (channel.proto).
const maxFrame = 8 << 20

// Channel is one phone's socket to the runtime, byte for byte. Send and Recv may be called concurrently with each other,
// each from one goroutine at a time.
type Channel struct {
	stream grpc.BidiStreamingClient[runtimev1.OpenChannelRequest, runtimev1.OpenChannelResponse]
	g      *generation
	cancel context.CancelFunc
}

// OpenChannel opens a channel to the process that runs now; it lives until either side ends it, ctx ends or the process
// does. Close it in any case. Errors: runtime_unavailable, draining, method_unsupported.
func (i *Instance) OpenChannel(ctx context.Context, open *runtime.ChannelOpen) (*Channel, error) {
	if err := i.enter(ctx); err != nil {
		return nil, err
	}
	defer i.leave()
	g, err := i.ready(ctx, doorPatience)
	if err != nil {
		return nil, err
	}
	if !runtime.Has(g.desc.Capabilities, runtime.CapabilityChannels) {
		return nil, codes.New(codes.MethodUnsupported)
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := g.rpc.Channels.OpenChannel(ctx)
	if err == nil {
		err = stream.Send(protomap.ToOpenChannelRequest(&runtime.OpenChannelRequest{Open: open}))
	}
	if err != nil {
		cancel()
		return nil, g.failed(err)
	}
	return &Channel{stream: stream, g: g, cancel: cancel}, nil
}

// Send hands a frame or a demand to the plugin. It blocks while the plugin is behind. A frame that is too large is
// refused before it can break the stream.
func (c *Channel) Send(r *runtime.OpenChannelRequest) error {
	if r.Frame != nil && len(r.Frame.Data) > maxFrame {
		return codes.New(codes.FrameTooLarge)
	}
	err := c.stream.Send(protomap.ToOpenChannelRequest(r))
	if errors.Is(err, io.EOF) { // the stream has ended; why is known to Recv
		return codes.New(codes.RuntimeUnavailable).With(codes.Unknown)
	}
	if err != nil {
		return c.g.failed(err)
	}
	return nil
}

// Recv gives the next frame, state, recycle or pairing; io.EOF when the plugin ended the channel in order.
func (c *Channel) Recv() (*runtime.OpenChannelResponse, error) {
	m, err := c.stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, c.g.failed(err)
	}
	return protomap.FromOpenChannelResponse(m), nil
}

// CloseSend ends our half: what was sent still arrives, and Recv goes on until the plugin ends its half.
func (c *Channel) CloseSend() error { return c.stream.CloseSend() }

// Close ends the channel at once.
func (c *Channel) Close() { c.cancel() }
