package obs

import (
	"bytes"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// NewRegistry makes a registry with what the Go runtime and the operating system tell about the process. Names of further
// metrics are openphone_<component>_<what>_<unit>; labels are closed sets, never ids of phones, conversations or runs.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// MetricsText gives everything in the text form of Prometheus.
func MetricsText(g prometheus.Gatherer) (string, error) {
	families, err := g.Gather()
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}
