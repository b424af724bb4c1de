// Package protocols measures the server over its real wire beside its peers: the part peers.
//
// The grid is 1, 64 and 1000 connections, each with 1, 16 and 64 requests in flight. The cells that
// goals are about have more rounds than the others: all servers at 64×64, the hot methods there,
// and one request in flight on each of 64 and 1000 connections. All servers but gRPC, which has
// bench/peers/grpc, are under the same load generator.
//
// In the pipelined cells the generator polls instead of sleeping (-spin=false to change that). The
// constant-reply server outruns the generator, which therefore never sleeps beside it; beside a
// slower server it would, and each of that server's writes would pay for waking it. Polling makes
// the two alike. With one request in flight both sides sleep, as real clients do.
//
// For latency (G8) the load is open: requests are due at a rate of their own, half of what the
// slower of the two servers answers at 64×64, and a latency counts from then. Each connection sends
// what is due of it once a millisecond, at a moment of its own.
//
// The server at -peer is another program's. It gets the same rows and the same grid; cells that it
// refuses, as with more connections than it allows, are left out and reported. CPU time and memory
// are read where its process is on this machine and this user's.
//
// What it does not show: a network (everything is loopback), more cores than the machine has, and
// latency under a load that leaves the machine room (the generator shares the cores; use -pin to
// keep them apart).
package protocols

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/gobench"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// pacedSpan is the time between two bursts of one connection of the paced load. The connections'
// bursts are spread evenly over it.
const pacedSpan = time.Millisecond

// Part measures the grid.
func Part() part.Part {
	built := ""
	return part.Part{
		Name: "peers", What: "the server beside its peers: connections by requests in flight, hot methods, the same rate (G1 to G4, G8, G11)",
		Defaults: func(o *part.Options) { o.Rounds = 7 },
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&built, "peers", "", "peers: folder with the built programs of bench/peers; empty builds them")
		},
		Run: func(r *part.Run) error { return run(r, built) },
	}
}

// field is everything that is measured: the server processes and the requests for them.
type field struct {
	*part.Run
	bin      string         // folder of the peers' programs
	replies  map[string]int // bytes of trunkline's reply, by method
	trunk    *load.Server
	bare     map[int]*load.Server // by reply size
	entrants []entrant            // in the order of the table
	profiles []func() error
}

// run starts the servers, measures, and evaluates.
func run(r *part.Run, built string) error {
	if r.Conns < 2 || r.Many <= r.Conns || r.Depth < 8 || r.Rows < r.Many {
		return errors.New("cannot make a grid: -conns is at least 2, -many more than that, -rows as many as -many, -depth at least 8")
	}
	f := &field{Run: r, bin: built, bare: map[int]*load.Server{}}
	if err := f.enter(); err != nil {
		return err
	}
	// The cells of goals get the most rounds, then the paced load at the rate that these found,
	// then fewer rounds for the rest of the grid.
	if err := f.Rounds(f.hotSteps()); err != nil {
		return err
	}
	if err := f.Rounds(f.pacedSteps()); err != nil {
		return err
	}
	if f.Asked("grid") {
		rounds := max(1, r.Options.Rounds/2)
		r.Report.Note("The cells that no goal but G11 is about have %d rounds.", rounds)
		if err := f.RoundsOf(rounds, f.restSteps()); err != nil {
			return err
		}
	}
	f.sortCells()
	f.goals()
	f.charts()
	for _, profile := range f.profiles {
		if err := profile(); err != nil {
			return err
		}
	}
	return nil
}

// sizes are the loads of the grid: connections, and requests in flight on each.
func (f *field) sizes() (list [][2]int) {
	for _, conns := range []int{1, f.Conns, f.Many} {
		for _, depth := range []int{1, f.Depth / 4, f.Depth} {
			list = append(list, [2]int{conns, depth})
		}
	}
	return list
}

// hotSteps are the cells that most goals are about: every client at full depth, the hot methods
// beside constant replies of their sizes, and one request in flight on each of many connections.
func (f *field) hotSteps() (steps []goal.Step) {
	for _, e := range f.entrants {
		steps = append(steps, e.step(f.Conns, f.Depth))
	}
	for _, method := range methods {
		if method != evaluated {
			steps = append(steps, f.kernelStep(f.bare[f.replies[method]], baregnet, method, f.Conns, f.Depth),
				f.kernelStep(f.trunk, trunkline, method, f.Conns, f.Depth))
		}
	}
	for _, e := range f.entrants {
		for _, conns := range []int{f.Conns, f.Many} {
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
	return conns == f.Conns && depth == f.Depth || bound && depth == 1 && conns > 1
}

// restSteps are the other cells of the grid.
func (f *field) restSteps() (steps []goal.Step) {
	for _, at := range f.sizes() {
		for _, e := range f.entrants {
			if !f.hot(e, at[0], at[1]) {
				steps = append(steps, e.step(at[0], at[1]))
			}
		}
	}
	return steps
}

// halfLoad is half of the requests/s that the slower of the two servers of G8 answers at full
// depth, 0 if one of them was not measured.
func (f *field) halfLoad() float64 {
	return min(f.Report.Median(f.deep(trunkline, evaluated), goal.Rate), f.Report.Median(f.deep(baregnet, evaluated), goal.Rate)) / 2
}

// pacedSteps load the two servers of G8 at the same rate, for longer than others: a p99 needs it.
func (f *field) pacedSteps() (steps []goal.Step) {
	cfg := f.Config("", load.Kernel, nil, f.Depth)
	cfg.PerSec, cfg.Tick, cfg.Burst = f.halfLoad(), pacedSpan/time.Duration(f.Conns), f.Depth
	for _, s := range []*load.Server{f.bare[f.replies[evaluated]], f.trunk} {
		cfg := cfg
		cfg.Addr, cfg.Tapes = s.Addr, load.RowTapes(evaluated, 0, f.Rows, f.Conns)
		steps = append(steps, goal.One(f.deep(s.Name, paced), func() (goal.Sample, error) { return load.Measure(cfg, s, f.Warmup, 2*f.Window) }))
	}
	return steps
}

// kernelStep gives every server tapes of its own: a tape remembers where its server's rows stand.
func (f *field) kernelStep(s *load.Server, name, method string, conns, depth int) goal.Step {
	cfg := f.config(s.Addr, load.Kernel, load.RowTapes(method, 0, f.Rows, conns), depth)
	if s == f.trunk && depth == f.Depth && conns == f.Conns {
		f.profiles = append(f.profiles, func() error { return f.Profiled(method, s, cfg) })
	}
	return f.Step(goal.Cell{Server: name, Method: method}, s, cfg)
}

// config is a load at a depth. With one request in flight the generator sleeps, as real clients do.
func (f *field) config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	cfg := f.Config(addr, p, tapes, depth)
	cfg.Spin, cfg.Full = cfg.Spin && depth > 1, true
	return cfg
}

// deep is a cell at full depth.
func (f *field) deep(server, method string) goal.Cell { return cell(server, method, f.Conns, f.Depth) }

func cell(server, method string, conns, depth int) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: conns, Depth: depth}
}

// sortCells brings cells of one size together, small ones first, paced ones last.
func (f *field) sortCells() {
	last := map[bool]int{true: 1}
	slices.SortStableFunc(f.Report.Samples, func(a, b goal.Sample) int {
		return cmp.Or(last[a.Cell.Method == paced]-last[b.Cell.Method == paced], a.Cell.Conns-b.Cell.Conns, a.Cell.Depth-b.Cell.Depth)
	})
}

// build builds the peers, unless they are built.
func (f *field) build() error {
	if f.bin != "" {
		return nil
	}
	f.bin = f.Rig.Dir
	_, err := gobench.Output("bench/peers", "go", "build", "-o", f.bin+string(filepath.Separator), "./...")
	return err
}

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
