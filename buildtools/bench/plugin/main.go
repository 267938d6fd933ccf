// Command plugin is the demo runtime as the benchmarks need it: under the id of its own file name, and with the clock
// written into every piece of text, so that whoever receives one knows how long it was under way. The clock is the wall
// clock, because it is the one that two processes of a computer share.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openphone-host/openphone/buildtools/bench/stamp"
	"github.com/openphone-host/openphone/plugins/demo/agent"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	serve.Main(&stamped{Agent: agent.New(agent.Options{Log: serve.Logger()}), id: strings.TrimPrefix(name, "openphone-runtime-")})
}

// stamped is the demo but for its id and its texts.
type stamped struct {
	*agent.Agent
	id string
}

var _ runtime.Runtime = (*stamped)(nil)

// Describe implements runtime.Runtime.
func (s *stamped) Describe(ctx context.Context) (*runtime.Description, error) {
	d, err := s.Agent.Describe(ctx)
	if err != nil {
		return nil, err
	}
	d.RuntimeID = s.id
	return d, nil
}

// Watch implements runtime.Runtime.
func (s *stamped) Watch(ctx context.Context, to runtime.Sink) error {
	return s.Agent.Watch(ctx, sink{to})
}

type sink struct{ runtime.Sink }

// Emit implements runtime.Sink: the clock is read last.
func (s sink) Emit(e runtime.Event) {
	if e.Text != nil && !e.Text.Replace {
		c := *e.Text
		c.Text = stamp.Text(time.Now())
		e.Text = &c
	}
	s.Sink.Emit(e)
}
