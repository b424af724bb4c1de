package protocols

import (
	"fmt"

	"trunkline/bench/internal/goal"
)

// goals evaluates what was measured: CPU per request by peer, of the methods that change no state
// and of TransitionState, and the others.
func (f *field) goals() {
	getCell := f.deep(f.getPeer(), get)
	for _, g := range []struct {
		id, peer         string
		cell             func(method string) goal.Cell
		must, transition float64
		moonshot         float64
	}{
		{"G1", "the constant-reply server", func(m string) goal.Cell { return f.deep(baregnet, m) }, 2.5, 3, 2},
		{"G2", "GET of " + getCell.Server, func(string) goal.Cell { return getCell }, 0.5, 0.7, 0.4},
		{"G3", "grpc-go unary", func(string) goal.Cell { return f.deep(grpcgo, unary) }, 0.03, 0.03, 0.02},
	} {
		others := goal.Goal{ID: g.id, What: "CPU per request against " + g.peer, Must: g.must, Moonshot: g.moonshot}
		transition := others
		transition.Must = g.transition
		for _, m := range methods {
			of := &others
			if m == transitionState {
				of = &transition
			}
			of.Add(m, f.Report.Ratio(f.deep(trunkline, m), g.cell(m), goal.CPU))
		}
		f.Report.Goal(others)
		f.Report.Goal(transition)
	}
	// What a request costs beyond its system calls.
	f.rateGoal(goal.Goal{ID: "G4", What: "depth 1, requests/s against the constant-reply server", Must: 0.97, Moonshot: 1},
		baregnet, 1, f.Conns, f.Many)
	f.Report.Goal(f.latencyGoal())
	if f.Options.Peer != "" {
		f.rateGoal(goal.Goal{ID: "G11", What: "full depth, requests/s against the given kernel server", Must: 20, Moonshot: 30},
			given, f.Depth, 1, f.Conns, f.Many)
	}
}

// getPeer is redis-server, or redcon where that was not measured.
func (f *field) getPeer() string {
	if f.Report.Median(f.deep(redis, get), goal.CPU) > 0 {
		return redis
	}
	return redcon
}

// rateGoal compares requests/s with those of a peer, over some numbers of connections.
func (f *field) rateGoal(g goal.Goal, peer string, depth int, conns ...int) {
	g.AtLeast = true
	for _, n := range conns {
		g.Add(fmt.Sprintf("%d connections", n), f.Report.Ratio(cell(trunkline, evaluated, n, depth), cell(peer, evaluated, n, depth), goal.Rate))
	}
	f.Report.Goal(g)
}

// latencyGoal is G8: both servers at the same rate, which leaves both of them room.
func (f *field) latencyGoal() goal.Goal {
	g := goal.Goal{ID: "G8", What: "p99 at half of the maximum load against the constant-reply server", Must: 1.2, Moonshot: 1}
	if rate := f.halfLoad(); rate > 0 {
		g.What += fmt.Sprintf(", both at %.0f requests/s: half of what the slower one answers at %d×%d", rate, f.Conns, f.Depth)
	}
	g.Add(evaluated, f.Report.Ratio(f.deep(trunkline, paced), f.deep(baregnet, paced), func(s goal.Sample) float64 { return s.P99 }))
	return g
}

// charts draws the grid: what a request costs each server as connections and depth grow. A chart
// that lacks sizes is left out, as without the grid. The samples are in the order of sizes.
func (f *field) charts() {
	draw := func(name, title, x string, at func(goal.Cell) (x int, ok bool)) {
		c := goal.Chart{Name: name, Title: "Server CPU per request as " + title, X: x, Y: "server CPU µs per request"}
		for _, e := range f.entrants {
			for _, s := range goal.Summarize(f.Report.Samples) {
				if x, ok := at(s.Cell); ok && s.Server == e.name && s.Method == e.method && s.Median.CPU > 0 {
					c.Add(e.name, float64(x), s.Median.CPU/1e3)
				}
			}
		}
		if len(c.Lines) > 0 && len(c.Lines[0].Points) > 2 {
			f.Report.Chart(c)
		}
	}
	draw("peers-depth", fmt.Sprintf("depth grows, at %d connections", f.Conns), "requests in flight on each connection",
		func(c goal.Cell) (int, bool) { return c.Depth, c.Conns == f.Conns })
	for _, depth := range []int{1, f.Depth} {
		draw(fmt.Sprintf("peers-connections-depth-%d", depth), fmt.Sprintf("connections grow, %d in flight on each", depth), "connections",
			func(c goal.Cell) (int, bool) { return c.Conns, c.Depth == depth })
	}
}
