package compare

import (
	"math"
	"slices"
)

// shift is how far the ratios of rounds are from 1.
type shift struct {
	Ratio  float64 `json:"ratio"` // now over baseline
	Low    float64 `json:"low"`   // of the 95 % interval
	High   float64 `json:"high"`
	P      float64 `json:"p"` // how often ratios that mean nothing are as far from 1
	Rounds int     `json:"rounds"`
}

// confidence is what the intervals leave out on both sides together.
const confidence = 0.05

// shiftOf is the signed-rank test of Wilcoxon and the estimate of Hodges and Lehmann that belongs
// to it, on the logarithms of ratios: it asks only that a ratio and its inverse are equally likely
// when nothing moved, which the turns of the two sides see to, and one wild round in five does it
// no harm. Both count the averages of all pairs of rounds (a round with itself too): the estimate
// is the middle one.
func shiftOf(ratios []float64) shift {
	n := len(ratios)
	if n == 0 {
		return shift{Ratio: 1, Low: 0, High: math.Inf(1), P: 1}
	}
	averages := make([]float64, 0, n*(n+1)/2)
	for i := range ratios {
		for j := range i + 1 {
			averages = append(averages, (math.Log(ratios[i])+math.Log(ratios[j]))/2)
		}
	}
	slices.Sort(averages)
	m, chance := len(averages), signedRank(n)
	below, _ := slices.BinarySearch(averages, 0)
	above := m - below
	for above > 0 && averages[m-above] == 0 {
		above--
	}
	// An average of 0 speaks for neither side and is counted for both: it can only make the ratios
	// mean less.
	least := m - max(below, above)
	at := 0 // as many averages on one side are too few for the middle to be there
	for at+1 < m/2 && 2*chance[at+1] <= confidence {
		at++
	}
	return shift{
		Ratio:  math.Exp((averages[(m-1)/2] + averages[m/2]) / 2),
		Low:    math.Exp(averages[at]),
		High:   math.Exp(averages[m-1-at]),
		P:      min(1, 2*chance[least]),
		Rounds: n,
	}
}

// signedRank returns by w how likely the ranks 1 to n, each with a coin's sign, have positive ones
// that add up to w at most.
func signedRank(n int) []float64 {
	chance := make([]float64, n*(n+1)/2+1)
	chance[0] = 1
	for rank := 1; rank <= n; rank++ {
		for w := rank * (rank + 1) / 2; w >= 0; w-- {
			with := 0.0
			if w >= rank {
				with = chance[w-rank]
			}
			chance[w] = (chance[w] + with) / 2
		}
	}
	for w := 1; w < len(chance); w++ {
		chance[w] += chance[w-1]
	}
	return chance
}
