package main

import (
	"os"

	"trunkline/bench/internal/goal"
)

// sizes are the loads of the grid: connections, and requests in flight on each.
func (o *options) sizes() (list [][2]int) {
	for _, conns := range []int{1, o.conns, o.many} {
		for _, depth := range []int{1, o.depth / 4, o.depth} {
			list = append(list, [2]int{conns, depth})
		}
	}
	return list
}

// measure takes all turns: most rounds for what goals are evaluated by, fewer for the rest of the
// grid, and then the paced load, whose rate the first ones found.
func (f *field) measure() ([]goal.Sample, error) {
	all, err := goal.Rounds(f.o.rounds, f.hotSteps(), os.Stderr)
	if err != nil {
		return nil, err
	}
	paced, err := goal.Rounds(f.o.rounds, f.pacedSteps(halfLoad(all, f.o)), os.Stderr)
	if err != nil || f.o.goalsOnly {
		return append(all, paced...), err
	}
	rest, err := goal.Rounds(f.o.gridRounds, f.restSteps(), os.Stderr)
	return append(append(all, paced...), rest...), err
}

// hotSteps are the cells that most goals are about: every client at full depth, the hot methods
// beside constant replies of their sizes, and one request in flight on each of many connections.
func (f *field) hotSteps() (steps []goal.Step) {
	for _, e := range f.entrants {
		steps = append(steps, e.step(f.o.conns, f.o.depth))
	}
	for _, method := range methods {
		if method != evaluated {
			steps = append(steps, f.kernelStep(f.bare[f.replies[method]], baregnet, method, f.o.conns, f.o.depth),
				f.kernelStep(f.trunk, trunkline, method, f.o.conns, f.o.depth))
		}
	}
	for _, e := range f.entrants {
		for _, conns := range []int{f.o.conns, f.o.many} {
			if f.hot(e, conns, 1) {
				steps = append(steps, e.step(conns, 1))
			}
		}
	}
	return steps
}

// hot reports that an entrant's cell is one of hotSteps.
func (f *field) hot(e entrant, conns, depth int) bool {
	bound := e.name == baregnet || e.name == trunkline
	return conns == f.o.conns && depth == f.o.depth || bound && depth == 1 && conns > 1
}

// restSteps are the other cells of the grid.
func (f *field) restSteps() (steps []goal.Step) {
	for _, at := range f.o.sizes() {
		for _, e := range f.entrants {
			if !f.hot(e, at[0], at[1]) {
				steps = append(steps, e.step(at[0], at[1]))
			}
		}
	}
	return steps
}
