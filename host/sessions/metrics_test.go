package sessions

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newRig(t)
	r.restart(func(o *Options) { o.Metrics = registry })
	r.up()
	key := r.create()
	id := r.send(key, "x", "k")
	for _, k := range []string{"k", "other"} {
		if _, err := r.Send(t.Context(), prompt(key, "x", k)); err != nil && codes.Of(err) != codes.RunActive {
			t.Fatal(err)
		}
	}
	r.emit(ended(id), text(id, "a", "late"))
	r.list(true)
	r.send(key, "y", "k-2")
	got, err := obs.MetricsText(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`openphone_sessions_prompts_total{result="accepted",runtime="fake"} 2`,
		`openphone_sessions_prompts_total{result="repeated",runtime="fake"} 1`,
		`openphone_sessions_prompts_total{result="refused",runtime="fake"} 1`,
		`openphone_sessions_runs_ended_total{reason="completed",runtime="fake"} 1`,
		`openphone_sessions_events_dropped_total{cause="run",runtime="fake"} 1`,
		`openphone_sessions_scans_total{result="complete",runtime="fake"} 1`,
		`openphone_sessions_open_runs{runtime="fake"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in:\n%s", want, got)
		}
	}
}
