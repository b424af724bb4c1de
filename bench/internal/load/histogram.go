//go:build linux

package load

import (
	"math/bits"
	"time"
)

// Latencies are counted in log-linear buckets: 64 per power of two, so that a quantile is off by at
// most 1.6 %.
const (
	subBits    = 6
	subBuckets = 1 << subBits
	maxShift   = 40 - subBits // above 2^40 ns, 18 minutes, everything is one bucket
	buckets    = (maxShift + 2) * subBuckets
)

// Histogram counts latencies. The zero Histogram is empty. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]uint64
	total  uint64
}

func bucketOf(ns uint64) int {
	if ns < subBuckets {
		return int(ns)
	}
	shift := bits.Len64(ns) - subBits - 1
	if shift > maxShift {
		return buckets - 1
	}
	return (shift+1)*subBuckets + int(ns>>shift) - subBuckets
}

// bucketTop returns the largest value of a bucket.
func bucketTop(i int) uint64 {
	if i < subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return uint64(i%subBuckets+subBuckets+1)<<shift - 1
}

// Add counts n requests that took ns nanoseconds each. Negative times count as 0. It does not
// allocate.
func (h *Histogram) Add(ns int64, n uint64) {
	h.counts[bucketOf(uint64(max(ns, 0)))] += n
	h.total += n
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// Total returns the number of requests counted.
func (h *Histogram) Total() uint64 { return h.total }

// Quantile returns the latency that the share q of the requests did not exceed, 0 for an empty
// histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.total)), h.total-1)
	for i, n := range h.counts {
		if rank < n {
			return time.Duration(bucketTop(i))
		}
		rank -= n
	}
	return time.Duration(bucketTop(buckets - 1))
}
