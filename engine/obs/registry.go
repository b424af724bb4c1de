package obs

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Prefix starts the name of every metric of ours.
const Prefix = "trunkline_"

// toolPrefix is that of the metrics whose names a protocol gives (toolhost §4.12).
const toolPrefix = "machina_"

// Registry holds the metrics of one engine. Its methods may be called from any goroutine.
type Registry struct {
	reg *prometheus.Registry
}

// NewRegistry returns a registry that already shows the Go runtime, the process and trunkline_build_info.
func NewRegistry(b Build) (*Registry, error) {
	r := &Registry{reg: prometheus.NewRegistry()}
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(b),
	} {
		if err := r.reg.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}
	return r, nil
}

// Gatherer returns the read side, for an exposition handler.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

// Add registers metrics whose values live elsewhere. All of them are refused if one has a bad name or exists already.
func (r *Registry) Add(metrics ...Metric) error {
	c := &collector{rows: make([]row, 0, len(metrics))}
	for _, m := range metrics {
		if err := m.check(); err != nil {
			return err
		}
		c.rows = append(c.rows, m.row())
	}
	if err := r.reg.Register(c); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	return nil
}

func buildInfo(b Build) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: Prefix + "build_info",
		Help: "Always 1; the labels say which build is running.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.Go, "goos": b.OS, "goarch": b.Arch,
		},
	})
	g.Set(1)
	return g
}

// check holds a metric to the naming rules, at registration rather than in somebody's dashboard.
func (m Metric) check() error {
	total := strings.HasSuffix(m.Name, "_total")
	switch {
	case !strings.HasPrefix(m.Name, Prefix) && !strings.HasPrefix(m.Name, toolPrefix):
		return fmt.Errorf("cannot register metric %q: the name must start with %s", m.Name, Prefix)
	case m.Kind == Counter && !total:
		return fmt.Errorf("cannot register counter %q: the name must end in _total", m.Name)
	case m.Kind == Gauge && total:
		return fmt.Errorf("cannot register gauge %q: only counters end in _total", m.Name)
	case m.Help == "":
		return fmt.Errorf("cannot register metric %q: it has no help text", m.Name)
	case m.Read == nil:
		return fmt.Errorf("cannot register metric %q: it has no value", m.Name)
	}
	return nil
}
