package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// PutTiming shows one series of a family of timings.
type PutTiming func(t *Timing, labelValues ...string)

// AddTimings registers a family of histograms, each of them native and classic: a scrape in the
// protobuf format gets all buckets, one in text a bound for each power of two. read is called on
// every scrape, from any goroutine, and puts each series once.
func (r *Registry) AddTimings(name, help string, labels []string, read func(PutTiming)) error {
	if err := checkName(name, help, Gauge); err != nil { // no _total, as for a gauge
		return err
	}
	return r.register(&timings{prometheus.NewDesc(name, help, labels, nil), time.Now(), read})
}

// timings shows what one reading puts.
type timings struct {
	desc  *prometheus.Desc
	since time.Time
	read  func(PutTiming)
}

// Describe implements prometheus.Collector.
func (g *timings) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *timings) Collect(out chan<- prometheus.Metric) {
	g.read(func(t *Timing, labelValues ...string) {
		m, err := t.read().metric(g.desc, g.since, labelValues)
		if err != nil {
			m = prometheus.NewInvalidMetric(g.desc, err)
		}
		out <- m
	})
}

// metric returns both forms of a histogram in one.
func (r *reading) metric(desc *prometheus.Desc, since time.Time, labelValues []string) (prometheus.Metric, error) {
	native, classic := make(map[int]int64), make(map[float64]uint64)
	below := uint64(0)
	for i, n := range r.buckets {
		below += n
		if i > 0 && n > 0 {
			native[i+firstBound] = int64(n)
		}
		if i%perPower == 0 && i < numBuckets-1 {
			classic[boundOf(i)] = below
		}
	}
	n, err := prometheus.NewConstNativeHistogram(desc, r.count, r.sum, native, nil, r.buckets[0], schema, boundOf(0), since, labelValues...)
	if err != nil {
		return nil, err
	}
	c, err := prometheus.NewConstHistogram(desc, r.count, r.sum, classic, labelValues...)
	return &both{n, c}, err
}

// both is a native histogram with the buckets of a classic one.
type both struct {
	prometheus.Metric
	classic prometheus.Metric
}

// Write implements prometheus.Metric.
func (b *both) Write(out *dto.Metric) error {
	var c dto.Metric
	if err := b.classic.Write(&c); err != nil {
		return err
	}
	if err := b.Metric.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = c.Histogram.Bucket
	return nil
}
