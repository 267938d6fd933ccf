package sessions

import "github.com/prometheus/client_golang/prometheus"

// metrics are the counters of one runtime's conversations. Their labels are closed sets; the runtime is a constant label.
type metrics struct {
	prompts      *prometheus.CounterVec // by what became of the request
	runs         *prometheus.CounterVec // by how they ended
	doubts       prometheus.Counter
	dropped      *prometheus.CounterVec // events nobody could use
	interactions *prometheus.CounterVec // by who decided
	scans        *prometheus.CounterVec // by how whole they were
}

func newMetrics(r prometheus.Registerer, c *Conversations) *metrics {
	vec := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "openphone", Subsystem: "sessions", Name: name, Help: help}, []string{label})
	}
	m := &metrics{
		prompts: vec("prompts_total", "Prompts by what became of them: accepted, repeated, refused.", "result"),
		runs:    vec("runs_ended_total", "Runs by the reason of their end.", "reason"),
		doubts: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "openphone", Subsystem: "sessions", Name: "outcomes_unknown_total",
			Help: "Dispatches of which nobody knew whether the runtime took them.",
		}),
		dropped:      vec("events_dropped_total", "Events of a dead process, and of runs nobody knows or that ended.", "cause"),
		interactions: vec("interactions_total", "Questions and approvals by who decided: person, policy, or refused because nobody could.", "by"),
		scans:        vec("scans_total", "Reads of the runtime's store: complete, incomplete, failed.", "result"),
	}
	if r != nil {
		open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "openphone", Subsystem: "sessions", Name: "open_runs",
			Help: "Runs without an end.",
		}, func() float64 { runs, _ := c.Busy(); return float64(runs) })
		prometheus.WrapRegistererWith(prometheus.Labels{"runtime": c.id}, r).MustRegister(m.prompts, m.runs, m.doubts, m.dropped,
			m.interactions, m.scans, open)
	}
	return m
}
