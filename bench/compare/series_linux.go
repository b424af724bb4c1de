package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The units that are evaluated. Every other unit is shown and not evaluated: most of it is one of
// these in another unit.
const (
	unitTime   = "ns/op"
	unitBytes  = "B/op"
	unitAllocs = "allocs/op"
)

// set is what one side showed: of each benchmark a result by round, in the order in which the
// benchmarks first came.
type set struct {
	config map[string]string
	order  []key
	of     map[key][]result
}

func newSet() *set { return &set{config: map[string]string{}, of: map[key][]result{}} }

// add takes what the process of one round printed. A benchmark shows up once in each round, or
// rounds of the two sides would be paired that have nothing in common.
func (s *set) add(round int, t text) error {
	for k, v := range t.config {
		s.config[k] = v
	}
	for _, r := range t.results {
		list := s.of[r.key]
		if len(list) == 0 {
			s.order = append(s.order, r.key)
		}
		if len(list) != round {
			return fmt.Errorf("%s has %d results after %d rounds: it must run once in each", r.key, len(list)+1, round+1)
		}
		s.of[r.key] = append(list, r)
	}
	return nil
}

// fastest leaves of each benchmark the result with the least time. What else runs on a machine only
// ever adds to it.
func fastest(all []result) (list []result) {
	at := map[key]int{}
	for _, r := range all {
		i, ok := at[r.key]
		if !ok {
			at[r.key] = len(list)
			list = append(list, r)
		} else if r.values[unitTime] < list[i].values[unitTime] {
			list[i] = r
		}
	}
	return list
}

// setOf takes a file as a set: the first line of a benchmark is its first round.
func setOf(t text) *set {
	s := newSet()
	s.config = t.config
	for _, r := range t.results {
		if len(s.of[r.key]) == 0 {
			s.order = append(s.order, r.key)
		}
		s.of[r.key] = append(s.of[r.key], r)
	}
	return s
}

// text returns the set as a file, the rounds of a benchmark together and the packages too.
func (s *set) text(config map[string]string) text {
	t := text{config: config}
	order := slices.Clone(s.order)
	slices.SortStableFunc(order, func(a, b key) int { return strings.Compare(a.pkg, b.pkg) })
	for _, k := range order {
		t.results = append(t.results, s.of[k]...)
	}
	return t
}

// keep leaves only the benchmarks that are wanted.
func (s *set) keep(wanted func(key) bool) {
	s.order = slices.DeleteFunc(s.order, func(k key) bool { return !wanted(k) })
	maps.DeleteFunc(s.of, func(k key, _ []result) bool { return !wanted(k) })
}

// figures returns the values of a benchmark in one unit by round, none if a round has none.
func (s *set) figures(k key, unit string) (v []float64) {
	for _, r := range s.of[k] {
		f, ok := r.values[unit]
		if !ok {
			return nil
		}
		v = append(v, f)
	}
	return v
}

// ratios returns now over base in the rounds that both have.
func ratios(base, now []float64) (r []float64) {
	for i := range min(len(base), len(now)) {
		if base[i] > 0 && now[i] > 0 {
			r = append(r, now[i]/base[i])
		}
	}
	return r
}
