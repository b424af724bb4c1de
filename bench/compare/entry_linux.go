package main

import (
	"slices"

	"trunkline/bench/internal/goal"
)

// entry is one benchmark in the report.
type entry struct {
	Package  string   `json:"package"`
	Name     string   `json:"name"`
	Verdict  verdict  `json:"verdict"`
	Memory   []memory `json:"memory,omitempty"` // what moved
	Now      *figures `json:"now,omitempty"`
	Baseline *figures `json:"baseline,omitempty"`
	// Change is the time's. Its rounds are those in which the benchmark was measured again, if it
	// was, so the medians of the two sides, which are of the first look, need not have this ratio.
	Change *shift `json:"change,omitempty"`
}

func (e *entry) key() key { return key{e.Package, e.Name} }

// figures are the medians over the rounds of one side.
type figures struct {
	Time   float64            `json:"ns_per_op"`
	Low    float64            `json:"ns_per_op_q1"` // the quartiles
	High   float64            `json:"ns_per_op_q3"`
	Bytes  float64            `json:"bytes_per_op"`
	Allocs float64            `json:"allocs_per_op"`
	Extra  map[string]float64 `json:"extra,omitempty"` // by unit
}

// figuresOf sums up a benchmark of one side, nil if it does not have it.
func figuresOf(s *set, k key) *figures {
	rounds := s.of[k]
	if len(rounds) == 0 {
		return nil
	}
	times := s.figures(k, unitTime)
	f := &figures{
		Time: goal.Median(times), Low: goal.Quantile(times, 0.25), High: goal.Quantile(times, 0.75),
		Bytes: goal.Median(s.figures(k, unitBytes)), Allocs: goal.Median(s.figures(k, unitAllocs)),
	}
	for unit := range rounds[0].values {
		if unit == unitTime || unit == unitBytes || unit == unitAllocs {
			continue
		}
		if f.Extra == nil {
			f.Extra = map[string]float64{}
		}
		f.Extra[unit] = goal.Median(s.figures(k, unit))
	}
	return f
}

// memory is a unit of memory that moved, from and to medians.
type memory struct {
	Unit string  `json:"unit"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
	More bool    `json:"more"`
}

// memoryOf reports what moved of a benchmark's memory: every round of one side is above every round
// of the other. Most benchmarks show the same figure in every round, and where buffers grow by
// chance, no order of all rounds comes about by chance.
func memoryOf(base, now *set, k key) (moved []memory) {
	for _, unit := range []string{unitAllocs, unitBytes} {
		a, b := base.figures(k, unit), now.figures(k, unit)
		if len(a) == 0 || len(b) == 0 {
			continue
		}
		m := memory{Unit: unit, From: goal.Median(a), To: goal.Median(b), More: slices.Min(b) > slices.Max(a)}
		if m.More || slices.Max(b) < slices.Min(a) {
			moved = append(moved, m)
		}
	}
	return moved
}
