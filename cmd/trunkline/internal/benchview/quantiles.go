package benchview

import "github.com/HdrHistogram/hdrhistogram-go"

// quantiles are what the tables, the lines and the charts show of a histogram, its maximum aside.
var (
	quantileNames = [...]string{"p50", "p90", "p99", "p99.9", "max"}
	quantilesOf   = [...]float64{50, 90, 99, 99.9}
)

// The places of what is drawn over time in what latencies returns.
const (
	atP50, atP99, atP999, atMax = 0, 2, 3, 4
)

// latencies returns the quantiles of h in the order of quantileNames, in nanoseconds; ok is false
// if nothing was recorded.
func latencies(h *hdrhistogram.Histogram) (ns [len(quantileNames)]int64, ok bool) {
	if recorded(h) == 0 {
		return ns, false
	}
	copy(ns[:], h.ValueAtPercentilesSlice(quantilesOf[:]))
	ns[len(ns)-1] = h.Max()
	return ns, true
}

// recorded is how many latencies h holds; nil holds none.
func recorded(h *hdrhistogram.Histogram) int64 {
	if h == nil {
		return 0
	}
	return h.TotalCount()
}

// latencyTexts are the cells of a table for h, in the order of quantileNames.
func latencyTexts(h *hdrhistogram.Histogram) []string {
	out := make([]string, len(quantileNames))
	ns, ok := latencies(h)
	for i := range out {
		out[i] = nothing
		if ok {
			out[i] = latencyText(ns[i])
		}
	}
	return out
}
