package obs

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// The buckets of a Timing are those of a native histogram of schema 2: four for each power of two,
// bounded by powers of the fourth root of two, in seconds. What took no longer than shortest is in
// the zero bucket, what took longer than 64 s in the last one.
const (
	schema      = 2
	perPower    = 1 << schema
	lowestPower = -20 // 2^-20 s are 954 ns
	topPower    = 6   // 64 s
	firstBound  = lowestPower * perPower
	lastBound   = topPower * perPower
	// numBuckets counts the zero bucket, those up to 64 s, and one for the rest.
	numBuckets = 1 + lastBound - firstBound + 1
)

// The bounds between a power of two in nanoseconds and the next one, shifted until the highest bit
// is set: 1e9 ns times the powers of the fourth root of two, rounded down.
const (
	quarter1 = 10215211334214395865
	quarter2 = 12148001999904198769
	quarter3 = 14446490411353358019
	second   = 1_000_000_000 << (64 - secondBits)

	secondBits = 30 // of 1e9
)

// Timing counts how long something took: 106 buckets and a sum, 856 bytes however much is recorded.
// The zero Timing is empty. Any goroutine may call its methods.
type Timing struct {
	buckets [numBuckets]atomic.Uint64
	sum     atomic.Int64 // ns
}

// Record counts n that took ns nanoseconds each. Less than zero counts as zero. It does not
// allocate.
func (t *Timing) Record(ns, n int64) {
	ns = max(ns, 0)
	t.buckets[bucketOf(ns)].Add(uint64(n))
	t.sum.Add(ns * n)
}

// bucketOf returns the index of the bucket for a duration, which is not negative. It has no branch
// that depends on the duration, for those of requests cannot be predicted.
func bucketOf(ns int64) int {
	n := bits.Len64(uint64(ns))
	x := uint64(ns) << (64 - n)
	i := (n-secondBits)*perPower - (perPower - 1) - firstBound
	if x > quarter1 {
		i++
	}
	if x > quarter2 {
		i++
	}
	if x > quarter3 {
		i++
	}
	if x > second {
		i++
	}
	return min(max(i, 0), numBuckets-1)
}

// boundOf returns the upper bound of a bucket in seconds, inclusive. That of the last one is the
// next bound above 64 s, which what it counts may exceed.
func boundOf(i int) float64 { return math.Exp2(float64(i+firstBound) / perPower) }

// reading is a Timing at one moment.
type reading struct {
	buckets [numBuckets]uint64
	count   uint64
	sum     float64 // seconds
}

// read reads the buckets one after the other; the count is theirs.
func (t *Timing) read() *reading {
	r := &reading{sum: float64(t.sum.Load()) / 1e9}
	for i := range r.buckets {
		r.buckets[i] = t.buckets[i].Load()
		r.count += r.buckets[i]
	}
	return r
}

// latency returns the row of a method.
func (r *reading) latency(protocol, method string, errors uint64) Latency {
	l := Latency{Protocol: protocol, Method: method, Count: r.count, Errors: errors, SumSeconds: r.sum}
	for i, n := range r.buckets {
		if n > 0 {
			l.Buckets = append(l.Buckets, Bucket{boundOf(i), n})
		}
	}
	l.P50, l.P90, l.P99, l.P999 = Quantile(l.Buckets, 0.5), Quantile(l.Buckets, 0.9), Quantile(l.Buckets, 0.99), Quantile(l.Buckets, 0.999)
	return l
}
