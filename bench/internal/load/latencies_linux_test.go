package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestLatencies(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all []int64
	for range 20000 {
		ns := r.Int64N(1 << (10 + r.IntN(24)))
		all = append(all, ns)
		h.Add(ns, 1)
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[int(q*float64(len(all)))-1]
		got := int64(h.Quantile(q))
		if got < exact || float64(got) > float64(exact)*1.001+1 {
			t.Errorf("quantile %v = %d, exactly %d", q, got, exact)
		}
	}
	var m Histogram
	m.Add(-5, 3)
	m.Merge(&h)
	if m.Total() != h.Total()+3 || m.Quantile(0) > 1 {
		t.Errorf("merged: %d latencies, smallest %v", m.Total(), m.Quantile(0))
	}
	m.Add(1<<62, 1)
	if top := m.Quantile(1); top < time.Hour {
		t.Errorf("a latency above the range reads as %v", top)
	}
}
