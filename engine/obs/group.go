package obs

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is one metric name whose series are only known when they are read, such as one per method that was called.
type Family struct {
	// Name, Help and Kind are as in Metric.
	Name, Help string
	Kind       Kind
	// Labels are the names of the labels; Put gives their values in the same order.
	Labels []string
}

// Put shows one series of the family with that index. A series may be shown once per reading.
type Put func(family int, value float64, labelValues ...string)

// AddGroup registers families that come from one reading, so that a scrape takes one consistent snapshot instead of many.
// read is called on every scrape, from any goroutine.
func (r *Registry) AddGroup(families []Family, read func(Put)) error {
	g := &group{read: read}
	for _, f := range families {
		m := Metric{Name: f.Name, Help: f.Help, Kind: f.Kind, Read: func() float64 { return 0 }}
		if err := m.check(); err != nil {
			return err
		}
		g.rows = append(g.rows, row{desc: prometheus.NewDesc(f.Name, f.Help, f.Labels, nil), kind: valueType(f.Kind)})
	}
	if err := r.reg.Register(g); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	return nil
}

// group shows what one reading puts.
type group struct {
	rows []row
	read func(Put)
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
		out <- constMetric(&g.rows[family], value, labelValues)
	})
}

func constMetric(r *row, value float64, labelValues []string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(r.desc, r.kind, value, labelValues...)
	if err != nil {
		return prometheus.NewInvalidMetric(r.desc, err)
	}
	return m
}

func valueType(k Kind) prometheus.ValueType {
	if k == Gauge {
		return prometheus.GaugeValue
	}
	return prometheus.CounterValue
}
