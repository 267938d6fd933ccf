package phone

import (
	"strings"
	"testing"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/clawket"
)

// Every refusal and every request is counted, under words that name no phone.
func TestMetrics(t *testing.T) {
	registry := obs.NewRegistry()
	w := start(t, func(o *Options) { o.Metrics = registry })
	w.raw(upgrade("/v1/none/ws", "Host: "+w.addr))
	w.raw(upgrade("/v1/demo/ws", "Host: "+w.addr, "Origin: http://x.example"))
	wrong := w.open("demo")
	wrong.request("sessions.list", "{}")
	wrong.wantClosed(clawket.ClosePolicy, clawket.ReasonUnauthorized)
	s := w.connect("a")
	s.ask("echo", "{}")
	s.ask("nope", "{}")
	s.send("null")
	s.read()
	eventually(t, func() bool { return w.l.Sockets() == 1 })
	text, err := obs.MetricsText(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`openphone_phone_refused_total{reason="target"} 1`, `openphone_phone_refused_total{reason="origin"} 1`,
		`openphone_phone_refused_total{reason="token"} 1`, `openphone_phone_requests_total{backend="demo",outcome="ok"} 2`,
		`openphone_phone_requests_total{backend="demo",outcome="failed"} 1`, `openphone_phone_requests_total{backend="demo",outcome="unreadable"} 1`,
		`openphone_phone_sockets 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
}
