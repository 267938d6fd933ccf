package runtimes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// TestChannel: frames come back byte for byte and in order, up to the largest; a larger one breaks nothing.
func TestChannel(t *testing.T) {
	r := newRig(t, variant{"channels": true}, nil)
	r.until(Ready)
	c, err := r.inst().OpenChannel(context.Background(), &runtime.ChannelOpen{ChannelID: "c1", HostVersion: "7"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if m, err := c.Recv(); err != nil || m.State == nil || m.State.Stage != runtime.ChannelStageOpen || m.State.DeviceName != "7" {
		t.Fatalf("%+v, %v", m, err)
	}
	random := rand.NewChaCha8([32]byte{})
	frames := make([]runtime.ChannelFrame, 0, 64)
	for _, n := range []int{0, 1, 100, 64 << 10, 1 << 20, maxFrame} {
		b := make([]byte, n)
		_, _ = random.Read(b)
		frames = append(frames, runtime.ChannelFrame{Data: b, Binary: n%2 == 0})
	}
	for n := range 50 {
		frames = append(frames, runtime.ChannelFrame{Data: []byte{byte(n)}})
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for k := range frames {
			if err := c.Send(&runtime.OpenChannelRequest{Frame: &frames[k]}); err != nil {
				t.Errorf("frame %d: %v", k, err)
				return
			}
		}
		if err := c.Send(&runtime.OpenChannelRequest{Frame: &runtime.ChannelFrame{Data: make([]byte, maxFrame+1)}}); codes.Of(err) != codes.FrameTooLarge {
			t.Errorf("a frame that is too large: %v", err)
		}
		_ = c.CloseSend()
	})
	for k := range frames {
		m, err := c.Recv()
		if err != nil || m.Frame == nil || !bytes.Equal(m.Frame.Data, frames[k].Data) || m.Frame.Binary != frames[k].Binary {
			t.Fatalf("frame %d of %d bytes came back different: %v", k, len(frames[k].Data), err)
		}
	}
	wg.Wait()
	if _, err := c.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// TestChannelEnds: a refusal has its code, a plugin without channels is not asked, and a dead one ends the channel.
func TestChannelEnds(t *testing.T) {
	r := newRig(t, variant{"channels": true}, nil)
	r.until(Ready)
	ctx := context.Background()
	refused, err := r.inst().OpenChannel(ctx, &runtime.ChannelOpen{ChannelID: "refuse"})
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	_, err = refused.Recv()
	code(t, err, codes.ChannelRefused)
	c, err := r.inst().OpenChannel(ctx, &runtime.ChannelOpen{ChannelID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Recv(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if _, err := c.Recv(); err == nil {
		t.Error("the channel goes on without its process")
	}
	plain := newRig(t, nil, nil)
	plain.until(Ready)
	_, err = plain.inst().OpenChannel(ctx, &runtime.ChannelOpen{})
	code(t, err, codes.MethodUnsupported)
}
