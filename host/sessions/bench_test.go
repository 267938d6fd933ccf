package sessions

import (
	"strconv"
	"testing"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// BenchmarkDelta is one event from the observer's call to the last subscriber.
func BenchmarkDelta(b *testing.B) {
	r := newRig(b)
	id := r.send(r.create(), "x", "k")
	batch := []runtime.Event{text(id, "a", "0123456789 ")}
	for b.Loop() {
		r.emit(batch...)
		if r.seq%10_000 == 0 {
			r.clear()
		}
	}
}

// BenchmarkSend is a prompt from the phone's call to its answer; BenchmarkReceipt is the bare commit in it.
func BenchmarkSend(b *testing.B) {
	r := newRig(b)
	key := r.create()
	n := 0
	for b.Loop() {
		n++
		id, err := r.Send(b.Context(), prompt(key, "x", strconv.Itoa(n)))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		r.dispatched(id)
		r.emit(ended(id))
		r.clear()
		b.StartTimer()
	}
}

func BenchmarkReceipt(b *testing.B) {
	r := newRig(b)
	key := r.create()
	n := 0
	for b.Loop() {
		n++
		id := strconv.Itoa(n)
		err := r.db.Accept(b.Context(), store.Run{Runtime: "fake", SessionID: key, RunID: id, Key: id}, store.Session{Runtime: "fake", SessionID: key})
		if err != nil {
			b.Fatal(err)
		}
	}
}
