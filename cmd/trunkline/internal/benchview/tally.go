package benchview

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// tally is what the block knows of a run: the newest sample, the sums of what was measured, and the
// last intervals. It keeps nothing of a sample but the newest, whose histograms it only reads.
type tally struct {
	newest      loadgen.Sample
	samples     int
	sum         loadgen.Sample
	rates, p99s history
}

func newTally() *tally {
	return &tally{sum: loadgen.Sample{
		Latency:  loadgen.NewHistogram(),
		ByMethod: make(map[string]*loadgen.MethodSample),
		Errors:   make(map[string]int64),
	}}
}

// add takes one interval. Warming up shows, but does not count.
func (t *tally) add(s loadgen.Sample) {
	t.newest = s
	t.samples++
	t.rates.add(perSecond(s.Done, s.To-s.From))
	ns, _ := latencies(s.Latency)
	t.p99s.add(float64(ns[atP99]))
	if s.From < 0 {
		return
	}
	sum := &t.sum
	sum.Due += s.Due
	sum.Sent += s.Sent
	sum.Done += s.Done
	sum.Failed += s.Failed
	sum.Lost += s.Lost
	sum.Late += s.Late
	sum.Bytes.Sent += s.Bytes.Sent
	sum.Bytes.Received += s.Bytes.Received
	merge(sum.Latency, s.Latency)
	for code, n := range s.Errors {
		if _, known := sum.Errors[code]; !known && len(sum.Errors) >= loadgen.MaxErrorKinds {
			code = loadgen.OtherErrors
		}
		sum.Errors[code] += n
	}
	for name, m := range s.ByMethod {
		t.addMethod(name, m)
	}
}

func (t *tally) addMethod(name string, m *loadgen.MethodSample) {
	if m == nil {
		return
	}
	of := t.sum.ByMethod[name]
	if of == nil {
		if len(t.sum.ByMethod) >= loadgen.MaxShares {
			return
		}
		of = &loadgen.MethodSample{Latency: loadgen.NewHistogram()}
		t.sum.ByMethod[name] = of
	}
	of.Done += m.Done
	of.Failed += m.Failed
	merge(of.Latency, m.Latency)
}

func merge(into, from *hdrhistogram.Histogram) {
	if recorded(from) > 0 {
		into.Merge(from)
	}
}
