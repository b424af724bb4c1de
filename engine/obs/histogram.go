package obs

import "github.com/prometheus/client_golang/prometheus"

// Histogram is a reading of a distribution that is counted elsewhere.
type Histogram struct {
	// Count is the number of observations, Sum all of them added up.
	Count uint64
	Sum   float64
	// Buckets gives for each upper bound how many observations were not above it, those of lower
	// bounds included.
	Buckets map[float64]uint64
}

// AddHistogram registers a distribution whose counts live elsewhere. read is called on every
// scrape, from any goroutine; without a result nothing is shown.
func (r *Registry) AddHistogram(name, help string, read func() (h Histogram, ok bool)) error {
	if err := checkName(name, help, Gauge); err != nil { // no _total, as for a gauge
		return err
	}
	return r.register(&histogram{prometheus.NewDesc(name, help, nil, nil), read})
}

// histogram shows what one reading gives.
type histogram struct {
	desc *prometheus.Desc
	read func() (Histogram, bool)
}

// Describe implements prometheus.Collector.
func (g *histogram) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *histogram) Collect(out chan<- prometheus.Metric) {
	h, ok := g.read()
	if !ok {
		return
	}
	m, err := prometheus.NewConstHistogram(g.desc, h.Count, h.Sum, h.Buckets)
	if err != nil {
		m = prometheus.NewInvalidMetric(g.desc, err)
	}
	out <- m
}
