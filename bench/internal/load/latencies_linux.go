package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/loadgen"
)

// Histogram counts latencies. The zero value is empty and takes its memory with the first latency.
// It is not safe for concurrent use.
type Histogram struct{ h *hdrhistogram.Histogram }

// Add counts n requests that took ns nanoseconds each. What is outside of the range of
// loadgen.NewHistogram counts as its end. It allocates for the first one only.
func (l *Histogram) Add(ns int64, n uint64) {
	if l.h == nil {
		l.h = loadgen.NewHistogram()
	}
	_ = l.h.RecordValues(min(max(ns, loadgen.LowestLatency), loadgen.HighestLatency), int64(n)) // the range is limited here
}

// Merge adds the latencies of o.
func (l *Histogram) Merge(o *Histogram) {
	if o.h == nil {
		return
	}
	if l.h == nil {
		l.h = loadgen.NewHistogram()
	}
	l.h.Merge(o.h)
}

// Total returns the number of requests counted.
func (l *Histogram) Total() uint64 {
	if l.h == nil {
		return 0
	}
	return uint64(l.h.TotalCount())
}

// Quantile returns the latency that the share q of the requests did not exceed, 0 without any.
func (l *Histogram) Quantile(q float64) time.Duration {
	if l.h == nil {
		return 0
	}
	return time.Duration(l.h.ValueAtQuantile(100 * q))
}
