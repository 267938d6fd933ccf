//go:build !windows

package runtimes

import (
	"context"
	"io"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// BenchmarkRestart is the time from the death of a plugin to the next accepted send; BenchmarkBareRestart is what
// go-plugin alone needs to start the same executable with mTLS and say hello.
func BenchmarkRestart(b *testing.B) {
	r := newRig(b, nil, nil)
	r.until(Ready)
	ctx := context.Background()
	var took []time.Duration
	for b.Loop() {
		i := r.inst()
		pid, n := i.Snapshot().PID, i.Generation()
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		for {
			_, err := i.PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: "r"})
			if err == nil && i.Generation() > n {
				break
			}
		}
		took = append(took, time.Since(began))
		b.StopTimer()
		if err := i.Restart(ctx); err != nil { // a fresh count of exits, so that the breaker stays closed
			b.Fatal(err)
		}
		b.StartTimer()
	}
	report(b, took)
}

func BenchmarkBareRestart(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		c := plugin.NewClient(&plugin.ClientConfig{
			HandshakeConfig: serve.Handshake, VersionedPlugins: serve.VersionedPlugins(), Cmd: exec.Command(built),
			AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true,
			Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
		})
		conn, err := c.Client()
		if err == nil {
			err = conn.Ping()
		}
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		b.StopTimer()
		c.Kill()
		b.StartTimer()
	}
	report(b, took)
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	ms := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
}
