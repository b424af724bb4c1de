package benchview

import (
	"math"
	"slices"
)

// sparks are the eighths of a cell, from the least.
var sparks = [...]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// sparkline draws values as one cell each, linear from zero to the greatest of them, which it also
// returns. Zero is a blank, so that a standstill is seen; anything above it is seen too. More
// values than width are joined by their maximum.
func sparkline(values []float64, width int) (line string, top float64) {
	values = joinByMax(values, width)
	for _, v := range values {
		top = max(top, v)
	}
	out := make([]rune, len(values))
	for i, v := range values {
		out[i] = ' '
		if v > 0 {
			out[i] = sparks[min(int(math.Ceil(v/top*float64(len(sparks)))), len(sparks))-1]
		}
	}
	return string(out), top
}

// joinByMax returns at most n values: neighbours are joined by their maximum, so that no spike is
// lost.
func joinByMax(values []float64, n int) []float64 {
	parts := groups(len(values), max(n, 0))
	out := make([]float64, len(parts))
	for i, g := range parts {
		out[i] = slices.Max(values[g.from:g.to])
	}
	return out
}

// historyIntervals is how many intervals the block looks back: more than the widest terminal shows.
const historyIntervals = 512

// history is the last historyIntervals values, in order.
type history []float64

func (h *history) add(v float64) {
	if len(*h) == historyIntervals {
		copy(*h, (*h)[1:])
		*h = (*h)[:historyIntervals-1]
	}
	*h = append(*h, v)
}

// last returns the newest n values, fewer if there are fewer.
func (h history) last(n int) []float64 {
	return h[max(len(h)-max(n, 0), 0):]
}
