package wire

import (
	"fmt"

	"trunkline/bench/internal/goal"
)

// goals evaluates what was measured.
func (f *field) goals() {
	getCell := f.deep(f.getPeer(), get)
	for _, change := range []bool{false, true} {
		must := func(others, transition float64) float64 {
			if change {
				return transition
			}
			return others
		}
		g1 := goal.Goal{ID: "G1", What: "CPU per request against the constant-reply server", Must: must(2.5, 3), Moonshot: 2}
		g2 := goal.Goal{ID: "G2", What: "CPU per request against GET of " + getCell.Server, Must: must(0.5, 0.7), Moonshot: 0.4}
		g3 := goal.Goal{ID: "G3", What: "CPU per request against grpc-go unary", Must: 0.03, Moonshot: 0.02}
		for _, m := range methods {
			if (m == transitionState) != change {
				continue
			}
			ours := f.deep(trunkline, m)
			g1.Add(m, f.Report.Ratio(ours, f.deep(baregnet, m), goal.CPU))
			g2.Add(m, f.Report.Ratio(ours, getCell, goal.CPU))
			g3.Add(m, f.Report.Ratio(ours, f.deep(grpcgo, unary), goal.CPU))
		}
		for _, g := range []goal.Goal{g1, g2, g3} {
			f.Report.Goal(g)
		}
	}
	f.Report.Goal(f.depthOneGoal())
	f.Report.Goal(f.latencyGoal())
	if f.Options.Peer != "" {
		f.Report.Goal(f.peerGoal())
	}
}

// getPeer is redis-server, or redcon where that was not measured.
func (f *field) getPeer() string {
	if f.Report.Median(f.deep(redis, get), goal.CPU) > 0 {
		return redis
	}
	return redcon
}

// depthOneGoal is G4: what a request costs beyond its system calls.
func (f *field) depthOneGoal() goal.Goal {
	g := goal.Goal{ID: "G4", What: "depth 1, requests/s against the constant-reply server", Must: 0.97, Moonshot: 1, AtLeast: true}
	for _, conns := range []int{f.Conns, f.Many} {
		g.Add(connections(conns), f.Report.Ratio(cell(trunkline, evaluated, conns, 1), cell(baregnet, evaluated, conns, 1), goal.Rate))
	}
	return g
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

// peerGoal is G11: against the server at -peer, whatever the number of connections.
func (f *field) peerGoal() goal.Goal {
	g := goal.Goal{ID: "G11", What: "full depth, requests/s against the given kernel server", Must: 20, Moonshot: 30, AtLeast: true}
	for _, conns := range []int{1, f.Conns, f.Many} {
		g.Add(connections(conns), f.Report.Ratio(cell(trunkline, evaluated, conns, f.Depth), cell(given, evaluated, conns, f.Depth), goal.Rate))
	}
	return g
}

func connections(n int) string { return fmt.Sprintf("%d connections", n) }

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
