package loadgen

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies counts latencies. The zero value is empty and takes its memory with the first latency.
// It is not safe for concurrent use.
type Latencies struct{ h *hdrhistogram.Histogram }

// Add counts n requests that took ns nanoseconds each. What is outside of the range of NewHistogram
// counts as its end. It allocates for the first one only.
func (l *Latencies) Add(ns int64, n uint64) {
	if l.h == nil {
		l.h = NewHistogram()
	}
	record(l.h, ns, int64(n))
}

// record counts a latency within the limits of a histogram.
func record(h *hdrhistogram.Histogram, ns, n int64) {
	_ = h.RecordValues(min(max(ns, LowestLatency), HighestLatency), n) // the range is limited here
}

// Merge adds the latencies of o.
func (l *Latencies) Merge(o *Latencies) {
	if o.h == nil {
		return
	}
	if l.h == nil {
		l.h = NewHistogram()
	}
	l.h.Merge(o.h)
}

// Total returns the number of requests counted.
func (l *Latencies) Total() uint64 {
	if l.h == nil {
		return 0
	}
	return uint64(l.h.TotalCount())
}

// Quantile returns the latency that the share q of the requests did not exceed, 0 without any.
func (l *Latencies) Quantile(q float64) time.Duration {
	if l.h == nil {
		return 0
	}
	return time.Duration(l.h.ValueAtQuantile(100 * q))
}
