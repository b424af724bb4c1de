package obs

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is how a metric behaves over time.
type Kind uint8

const (
	// Counter only grows, until the process ends.
	Counter Kind = iota
	// Gauge goes up and down.
	Gauge
)

// Family is one metric name whose series are known when they are read, such as one per called
// method.
type Family struct {
	// Name is the full name, "trunkline_" included, with its unit.
	Name string
	// Help is one sentence for people.
	Help string
	Kind Kind
	// Labels are the names of the labels; Put gives their values in the same order. Values come
	// from closed sets: methods, codes, kinds of listeners.
	Labels []string
}

// Put shows one series of the family with that index. A series may be shown once per reading.
type Put func(family int, value float64, labelValues ...string)

// AddGroup registers families that come from one reading, so that a scrape takes one consistent
// snapshot instead of many. read is called on every scrape, from any goroutine. It must neither
// block nor allocate much.
func (r *Registry) AddGroup(families []Family, read func(Put)) error {
	g := &group{read: read}
	for _, f := range families {
		if err := checkName(f.Name, f.Help, f.Kind); err != nil {
			return err
		}
		w := row{prometheus.NewDesc(f.Name, f.Help, f.Labels, nil), prometheus.CounterValue}
		if f.Kind == Gauge {
			w.kind = prometheus.GaugeValue
		}
		g.rows = append(g.rows, w)
	}
	return r.register(g)
}

// checkName holds a metric to the naming rules, at registration rather than in a dashboard.
func checkName(name, help string, kind Kind) error {
	total := strings.HasSuffix(name, "_total")
	switch {
	case !strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, toolPrefix):
		return fmt.Errorf("cannot register metric %q: the name must start with %s", name, prefix)
	case kind == Counter && !total:
		return fmt.Errorf("cannot register counter %q: the name must end in _total", name)
	case kind == Gauge && total:
		return fmt.Errorf("cannot register gauge %q: only counters end in _total", name)
	case help == "":
		return fmt.Errorf("cannot register metric %q: it has no help text", name)
	}
	return nil
}

// group shows what one reading puts.
type group struct {
	rows []row
	read func(Put)
}

type row struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// Describe implements prometheus.Collector.
func (g *group) Describe(out chan<- *prometheus.Desc) {
	for i := range g.rows {
		out <- g.rows[i].desc
	}
}

// Collect implements prometheus.Collector.
func (g *group) Collect(out chan<- prometheus.Metric) {
	g.read(func(family int, value float64, labelValues ...string) {
		r := &g.rows[family]
		m, err := prometheus.NewConstMetric(r.desc, r.kind, value, labelValues...)
		if err != nil {
			m = prometheus.NewInvalidMetric(r.desc, err)
		}
		out <- m
	})
}
