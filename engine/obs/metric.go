package obs

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind says how a metric behaves over time.
type Kind uint8

const (
	// Counter only grows, until the process ends.
	Counter Kind = iota
	// Gauge goes up and down.
	Gauge
)

// Label is one name=value pair. Values come from closed sets: methods, codes, listener kinds.
type Label struct{ Name, Value string }

// Metric is one time series whose value lives elsewhere. Series of one name differ in label values only and share the label
// names and the help text.
type Metric struct {
	// Name is the full name, "trunkline_" included, with its unit.
	Name string
	// Help is one sentence for people.
	Help   string
	Kind   Kind
	Labels []Label
	// Read returns the value now. It is called on every scrape, from any goroutine, and must neither block nor allocate much.
	Read func() float64
}

// Uint64 reads an atomic counter that a hot path owns.
func Uint64(v *atomic.Uint64) func() float64 {
	return func() float64 { return float64(v.Load()) }
}

// Int64 reads an atomic gauge that a hot path owns.
func Int64(v *atomic.Int64) func() float64 {
	return func() float64 { return float64(v.Load()) }
}

// collector shows a fixed set of rows; it keeps no value of its own.
type collector struct{ rows []row }

type row struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values []string
	read   func() float64
}

func (m Metric) row() row {
	labels := slices.Clone(m.Labels)
	slices.SortFunc(labels, func(a, b Label) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	r := row{kind: valueType(m.Kind), read: m.Read}
	names := make([]string, 0, len(labels))
	for _, l := range labels {
		names = append(names, l.Name)
		r.values = append(r.values, l.Value)
	}
	r.desc = prometheus.NewDesc(m.Name, m.Help, names, nil)
	return r
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for i := range c.rows {
		out <- c.rows[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for i := range c.rows {
		r := &c.rows[i]
		out <- constMetric(r, r.read(), r.values)
	}
}
