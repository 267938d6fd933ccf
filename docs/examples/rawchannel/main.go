// Command rawchannel is the smallest plugin that carries raw frames and nothing else: each phone socket becomes one
// connection to a native server, and bytes go both ways as they came. Here the native server is an echo in the same
// process, behind a real byte stream with frames of its own format, so that the conformance kit can compare every byte.
//
// A real one replaces dial: see runtime.FrameCarrier, and channel.proto for what else a channel can say.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

func main() { serve.Main(&carrier{}) }

// carrier has no conversations: it reports itself degraded, which says that it cannot reply, and refuses prompts.
type carrier struct{}

var (
	_ runtime.Runtime      = (*carrier)(nil)
	_ runtime.FrameCarrier = (*carrier)(nil)
)

func (*carrier) Describe(context.Context) (*runtime.Description, error) {
	return &runtime.Description{
		RuntimeID: "rawchannel", Name: "Raw channel", PluginVersion: "1.0.0",
		SessionLayout: runtime.SessionLayoutMany, ChannelProtocol: "echo", SideBySide: true,
	}, nil
}

func (*carrier) Configure(context.Context, *runtime.ConfigureRequest, runtime.Host) error { return nil }

func (*carrier) Health(context.Context, *runtime.HealthRequest) (*runtime.Status, error) {
	return &runtime.Status{Condition: runtime.ConditionDegraded, Reason: codes.MethodUnsupported, EvidenceAt: time.Now()}, nil
}

func (*carrier) Watch(context.Context, runtime.Sink) error { return nil }

func (*carrier) ListSessions(context.Context, *runtime.ListSessionsRequest, func([]runtime.Session) error) (*runtime.ScanEnd, error) {
	return &runtime.ScanEnd{Complete: true}, nil
}

func (*carrier) ReadHistory(_ context.Context, r *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	if r.Cursor != "" {
		return nil, codes.New(codes.CursorInvalid)
	}
	if r.Session.NativeID != "" {
		return nil, codes.New(codes.SessionLost)
	}
	return &runtime.ReadHistoryResponse{}, nil
}

func (*carrier) PrepareRun(_ context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	if r.Session.NativeID != "" {
		return nil, codes.New(codes.SessionLost)
	}
	return nil, codes.New(codes.MethodUnsupported)
}

func (*carrier) CommitRun(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	return &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotDispatched}, nil
}

func (*carrier) AbandonRun(context.Context, *runtime.AbandonRunRequest) error { return nil }

func (*carrier) StopRun(context.Context, *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
}

func (*carrier) Shutdown(context.Context) error { return nil }

// OpenChannel carries one socket until either side ends it. Nothing is queued here: a side that does not read holds up
// its own socket and no other.
func (*carrier) OpenChannel(ctx context.Context, _ *runtime.ChannelOpen, ch runtime.Channel) error {
	g, ctx := errgroup.WithContext(ctx)
	native := dial(g)
	stop := context.AfterFunc(ctx, func() { _ = native.Close() })
	defer stop()
	if err := ch.Send(&runtime.OpenChannelResponse{State: &runtime.ChannelState{Stage: runtime.ChannelStageOpen}}); err != nil {
		return err
	}
	g.Go(func() error { // phone to runtime
		defer native.Close()
		for {
			m, err := ch.Recv()
			if errors.Is(err, io.EOF) {
				return io.EOF
			}
			if err != nil {
				return err
			}
			if m.Frame == nil {
				continue // demand and what a later version adds
			}
			if err := writeFrame(native, m.Frame); err != nil {
				return io.EOF
			}
		}
	})
	g.Go(func() error { // runtime to phone
		in := bufio.NewReaderSize(native, 64<<10)
		for {
			f, err := readFrame(in)
			if err != nil {
				return io.EOF
			}
			if err := ch.Send(&runtime.OpenChannelResponse{Frame: f}); err != nil {
				return err
			}
		}
	})
	if err := g.Wait(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// dial connects to the native server: an echo.
func dial(g *errgroup.Group) net.Conn {
	here, there := net.Pipe()
	g.Go(func() error {
		defer there.Close()
		in := bufio.NewReaderSize(there, 64<<10)
		for {
			f, err := readFrame(in)
			if err != nil {
				return nil
			}
			if err := writeFrame(there, f); err != nil {
				return nil
			}
		}
	})
	return here
}

// The native format: four bytes of length, one of kind, the bytes.
func writeFrame(w io.Writer, f *runtime.ChannelFrame) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(f.Data)))
	kind := byte(0)
	if f.Binary {
		kind = 1
	}
	_, err := w.Write(append(append(head, kind), f.Data...))
	return err
}

func readFrame(r io.Reader) (*runtime.ChannelFrame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	f := &runtime.ChannelFrame{Data: make([]byte, binary.BigEndian.Uint32(head[:4])), Binary: head[4] == 1}
	_, err := io.ReadFull(r, f.Data)
	return f, err
}
