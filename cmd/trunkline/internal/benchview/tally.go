package benchview

import "trunkline/cmd/trunkline/internal/loadgen"

// tally is what the block knows of a run: the newest sample, the sums of what was measured, and the
// last intervals. It keeps nothing of a sample but the newest, whose histograms it only reads.
type tally struct {
	newest      loadgen.Sample
	samples     int
	sum         loadgen.Sample
	rates, p99s history
}

func newTally() *tally { return &tally{sum: loadgen.NewSample(nil)} }

// add takes one interval. Warming up shows, but does not count.
func (t *tally) add(s loadgen.Sample) {
	t.newest = s
	t.samples++
	t.rates.add(perSecond(s.Done, s.To-s.From))
	ns, _ := latencies(s.Latency)
	t.p99s.add(float64(ns[atP99]))
	if s.From >= 0 {
		t.sum.Add(&s)
	}
}
