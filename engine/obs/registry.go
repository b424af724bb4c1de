package obs

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// prefix starts the name of every metric of ours.
const prefix = "trunkline_"

// toolPrefix is that of the metrics whose names a protocol gives (toolhost §4.12).
const toolPrefix = "machina_"

// Registry holds the metrics of one engine. Its methods may be called from any goroutine.
type Registry struct {
	reg *prometheus.Registry
}

// NewRegistry returns a registry that already shows the Go runtime, the process and
// trunkline_build_info.
func NewRegistry(b Build) (*Registry, error) {
	r := &Registry{reg: prometheus.NewRegistry()}
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(b),
	} {
		if err := r.register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Gatherer returns the read side, for an exposition handler.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

func (r *Registry) register(c prometheus.Collector) error {
	if err := r.reg.Register(c); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	return nil
}

func buildInfo(b Build) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "build_info",
		Help: "Always 1; the labels say which build is running.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.Go, "goos": b.OS, "goarch": b.Arch,
		},
	})
	g.Set(1)
	return g
}
