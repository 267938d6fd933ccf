package runtimes

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestNothingLeaks: processes come and go, and goroutines and open files do not add up.
func TestNothingLeaks(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	count := func() (goroutines, files int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(list)
	}
	cycle := func(n int) {
		for range n {
			if err := r.inst().Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(2)
	goroutines, files := count()
	cycle(10)
	limit := time.After(10 * time.Second)
	for { // what belonged to the last process goes away beside the next one
		g, f := count()
		if g <= goroutines+4 && f <= files+2 {
			break
		}
		select {
		case <-limit:
			t.Fatalf("goroutines %d, then %d; files %d, then %d", goroutines, g, files, f)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
