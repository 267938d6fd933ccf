package phone

import "github.com/prometheus/client_golang/prometheus"

// metrics are the counters of this package. Labels are closed sets: backends as configured, and the words below.
type metrics struct {
	refused  *prometheus.CounterVec // upgrades and first frames, by why
	requests *prometheus.CounterVec // by backend and how they ended
}

// Why somebody was not let in.
const (
	refusedTarget = "target"
	refusedOrigin = "origin"
	refusedFull   = "full"
	refusedToken  = "token"
	refusedLate   = "late"
)

// How a request ended.
const (
	endedOK       = "ok"
	endedFailed   = "failed"
	endedClosed   = "restarting"
	endedTooMany  = "too_many"
	endedBusy     = "busy"
	endedUnusable = "unreadable"
)

func newMetrics(r prometheus.Registerer, l *Listener) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "openphone", Subsystem: "phone", Name: name, Help: help}, labels)
	}
	m := &metrics{
		refused:  counter("refused_total", "Connections that were not let in.", "reason"),
		requests: counter("requests_total", "Requests of phones.", "backend", "outcome"),
	}
	if r != nil {
		r.MustRegister(m.refused, m.requests, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "openphone", Subsystem: "phone", Name: "sockets", Help: "Open sockets, authenticated or not.",
		}, func() float64 { return float64(l.Sockets()) }))
	}
	return m
}

func (m *metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }

func (m *metrics) ended(backend, outcome string) { m.requests.WithLabelValues(backend, outcome).Inc() }
