package runtimes

import "github.com/prometheus/client_golang/prometheus"

// metrics are the counters of this package; labels are instance ids, which are as few as there are plugins installed.
type metrics struct {
	starts, exits, hangs, gaps, children, spared *prometheus.CounterVec
	kept, up                                     *prometheus.GaugeVec
	ready                                        *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "openphone", Subsystem: "runtimes", Name: name, Help: help}, []string{"runtime"})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "openphone", Subsystem: "runtimes", Name: name, Help: help}, []string{"runtime"})
	}
	m := &metrics{
		starts:   counter("starts_total", "Plugin processes started."),
		exits:    counter("exits_total", "Plugin processes that ended by themselves or could not start."),
		hangs:    counter("hangs_total", "Plugin processes killed because they did not answer."),
		gaps:     counter("event_gaps_total", "Gaps in event numbers."),
		children: counter("children_ended_total", "Processes a plugin left behind and the host ended."),
		spared:   counter("children_kept_total", "Programs a plugin left running on purpose when it ended."),
		kept:     gauge("kept_programs", "Programs a plugin has started to stay, and that run now."),
		up:       gauge("up", "1 while the plugin is ready."),
		ready: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "openphone", Subsystem: "runtimes", Name: "ready_seconds", Help: "Time from start to ready.",
			Buckets: []float64{.02, .03, .04, .06, .1, .2, .5, 1, 3, 10},
		}, []string{"runtime"}),
	}
	if r != nil {
		r.MustRegister(m.starts, m.exits, m.hangs, m.gaps, m.children, m.spared, m.kept, m.up, m.ready)
	}
	return m
}
