package serve

import (
	"sync"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// midText is the number of the text event of a run that counts as its middle.
const midText = 5

// faultSink passes the kill points of a run's events. It counts texts of the last run only, which is enough for a suite
// that sends one prompt at a time.
type faultSink struct {
	next runtime.Sink

	mu    sync.Mutex
	run   string
	texts int
}

func (f *faultSink) Seq() uint64 { return f.next.Seq() }

func (f *faultSink) Emit(e runtime.Event) {
	if p := f.point(&e); p != "" {
		Fault(p)
	}
	f.next.Emit(e)
}

func (f *faultSink) point(e *runtime.Event) string {
	switch {
	case e.RunStarted != nil:
		return PointRunStarted
	case e.ToolCall != nil:
		return PointToolCall
	case e.RunEnded != nil:
		return PointRunEnding
	case e.Text == nil:
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run != e.RunID {
		f.run, f.texts = e.RunID, 0
	}
	f.texts++
	switch f.texts {
	case 1:
		return PointFirstText
	case midText:
		return PointMidText
	}
	return ""
}
