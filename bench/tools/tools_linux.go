// Package tools measures the tool server beside a server that does nothing with its lines, and
// evaluates the goals of its hot path (toolhost §10).
//
//	go run ./bench tools                     under six minutes
//	go run ./bench tools -quick              a look, under a minute
//	go run ./bench tools -only 'worker|start'
//
// Requests/s are what is evaluated; the ratio of the server's CPU time per request stands beside
// it, because the generator's share does not distort that.
//
// tcp: requests pipelined over one connection and over many, of three kinds: a tool that does
// nothing (noop), a request whose outcome is kept under its key (hit), and a tool that writes one
// slot of the state (slot). The peer is this program again, as a child: the same event loops and
// listener, and a session that sends each line back. It reads nothing in the line but its end. The
// goals are about many connections; one is reported.
//
// pipes: the same over stdin and stdout. Here the peer answers each line with a constant reply as
// long as the tool server's, through the same reader and writer goroutines. The goal is about noop;
// hit and slot are reported.
//
// worker: an external tool on kept processes beside one process for each call, one call at a time
// and several. The goal is about a tool in Python that imports nothing but sys, where python3 is
// installed. Beside it stands the small Go program in bench/tools/worker, which is reported: its
// whole life takes about a millisecond, less than most interpreters take to start.
//
// start: what a caller waits for who starts the program for every call (tool_exec), and the CPU
// time it takes; beside the small program, which is about the least a Go program takes.
//
// What it does not show: a network, more cores than the machine has, and tools that do something.
package tools

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// The servers of the table.
const (
	trunkline = "trunkline"
	echo      = "echo"
	constant  = "constant"
	small     = "small program"
)

const (
	// maxInFlight bounds the requests in flight of all connections, and maxDepth those of one:
	// their replies fit into a pipe.
	maxInFlight = 1 << 16
	maxDepth    = 256
	// workerConns is how many callers of an external tool there are in the cells with many: twice
	// as many as it has processes.
	workerConns = 8
	// primeTimeout bounds the requests before a cell.
	primeTimeout = 10 * time.Second
	// mustWorker is asked of kept processes beside one for each call.
	mustWorker = 50
	// quickStarts is how often -quick starts the program.
	quickStarts = 150
)

// Part measures the tool server.
func Part() part.Part {
	b := bench{starts: 1000}
	return part.Part{
		Name: "tools", What: "tool lines beside a bare echo, kept workers beside one process per call, and starts (G15)",
		Defaults: func(o *part.Options) { o.Rounds, o.Warmup, o.Window = 7, 200*time.Millisecond, time.Second },
		Quick:    func(o *part.Options) { o.Rounds, o.Warmup, o.Window = 3, 100*time.Millisecond, 300*time.Millisecond },
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&b.starts, "starts", b.starts, "tools: times that the program is started, in all rounds together")
		},
		Children: map[string]func([]string) error{echoChild: beEcho},
		Run: func(r *part.Run) error {
			if r.Conns*r.Depth > maxInFlight || r.Depth > maxDepth {
				return fmt.Errorf("cannot have %d×%d requests in flight: at most %d, and %d on a connection", r.Conns, r.Depth, maxInFlight, maxDepth)
			}
			if r.Quick {
				b.starts = min(b.starts, quickStarts)
			}
			return b.run(r)
		},
	}
}

// bench is what all cells share. The run's folder holds the binaries and the manifest.
type bench struct {
	*part.Run
	starts   int
	worker   string // binary of the external tool
	python   string // the interpreter, empty where there is none
	manifest string
}

func (b *bench) run(r *part.Run) (err error) {
	b.Run = r
	if b.worker, err = load.FindBinary("", "./bench/tools/worker", r.Rig.Dir); err != nil {
		return err
	}
	if err := b.writeManifest(); err != nil {
		return err
	}
	section := func(name string, measure func() error) part.Section {
		return part.Section{Name: name, Measure: func(*part.Run) error { return measure() }}
	}
	start := pair{goal: goal.Goal{What: "start and answer / small program"}, member: "starts/s",
		ours: b.starting(trunkline, b.Binary, "tool_exec", noopAID), peer: b.starting(small, b.worker)}
	return r.Sections(section("tcp", b.tcp), section("pipes", b.pipes), section("worker", b.workers),
		section("start", func() error { return b.compare([]pair{start}) }))
}

// serve starts the tool server over TCP.
func (b *bench) serve() (*load.Server, error) {
	return b.Start(load.Command{Name: trunkline, Path: b.Binary, Listening: regexp.MustCompile(`toolhost listening on tcp://(\S+)`),
		Args: append(b.serveArgs(), "--listen", "tcp://127.0.0.1:0"), Env: b.env()})
}

// serveArgs serves the built-in tools and those of the manifest. What is kept outlives the run, so
// that every hit is one.
func (b *bench) serveArgs() []string {
	return []string{"--serve", "builtin", "--plugin", b.manifest, "--idemp-ttl-ms", "3600000"}
}

func (b *bench) env() []string { return []string{"MACHINA_ROOT=" + b.Rig.Dir, "MACHINA_API_TOKEN="} }

// measured is a cell and how it is measured.
type measured struct {
	goal.Cell
	measure func() (goal.Sample, error)
}

// pair is a cell, and the peer's that its requests/s are compared with.
type pair struct {
	goal       goal.Goal // pairs whose goals have the same name are its members
	member     string
	ours, peer measured
	noCPU      bool // the CPU time of the servers is not what the cells cost
}

// compare measures the cells of all pairs in turns and evaluates their goals.
func (b *bench) compare(pairs []pair) error {
	var steps []goal.Step
	for _, p := range pairs {
		steps = append(steps, goal.One(p.ours.Cell, p.ours.measure), goal.One(p.peer.Cell, p.peer.measure))
	}
	if err := b.Rounds(steps); err != nil {
		return err
	}
	for i := range pairs {
		g := pairs[i].goal
		if i > 0 && pairs[i-1].goal.What == g.What {
			continue
		}
		g.AtLeast = true
		for _, p := range pairs {
			if p.goal.What != g.What {
				continue
			}
			cpu := 0.0
			if !p.noCPU {
				cpu = b.Report.Ratio(p.peer.Cell, p.ours.Cell, goal.CPU)
			}
			g.AddCPU(p.member, b.Report.Ratio(p.ours.Cell, p.peer.Cell, goal.Rate), cpu)
		}
		b.Report.Goal(g)
	}
	return nil
}

// tcp measures the hot kinds over one connection and over many.
func (b *bench) tcp() error {
	ours, err := b.serve()
	if err != nil {
		return err
	}
	peer, err := b.Child(echo, echoChild)
	if err != nil {
		return err
	}
	var pairs []pair
	for _, k := range hot() {
		for _, conns := range slices.Compact([]int{1, b.Conns}) {
			g := goal.Goal{What: fmt.Sprintf("tool lines over TCP, %d×%d, requests/s over a bare echo, %s", conns, b.Depth, k.name)}
			if conns > 1 {
				g.ID, g.Must, g.Moonshot = "G15", k.must, k.moonshot
			}
			pairs = append(pairs, pair{goal: g, member: k.name, ours: b.lines(ours, k, conns, b.Depth, b.Spin), peer: b.lines(peer, k, conns, b.Depth, b.Spin)})
		}
	}
	return b.compare(pairs)
}

// lines is a cell over TCP. The tool server is primed; an echo is as long as the request.
func (b *bench) lines(s *load.Server, k kind, conns, depth int, spin bool) measured {
	c := goal.Cell{Server: s.Name, Method: k.name, Via: "tcp", Conns: conns, Depth: depth}
	return measured{c, func() (goal.Sample, error) {
		cfg := b.Config(s.Addr, load.Lines, k.tapes(conns), depth)
		cfg.Reply, cfg.Spin = len(k.requests()[0]), spin
		if s.Name == trunkline {
			conn, err := load.Dial(s.Addr)
			if err != nil {
				return goal.Sample{}, err
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(primeTimeout)) // an error shows with the next call
			if cfg.Reply, err = k.prime(conn); err != nil {
				return goal.Sample{}, err
			}
			cfg.Good = began
		}
		return load.Measure(cfg, s, b.Warmup, b.Window)
	}}
}

// workers measures external tools on kept processes and with a process for each call.
func (b *bench) workers() error {
	ours, err := b.serve()
	if err != nil {
		return err
	}
	tools := []struct {
		kept, once kind
		depths     []int
		must       float64
	}{
		{external("kept process", keptAID), external("process per call", perCallAID), slices.Compact([]int{1, b.Depth}), 0},
		{external("kept python3", keptPyAID), external("python3 per call", oncePyAID), []int{1}, mustWorker}, // a queue of starts would take longer than a round
	}
	if b.python == "" {
		b.Report.Note("There is no python3: its tools were not measured.")
		tools = tools[:1]
	}
	var pairs []pair
	for _, t := range tools {
		for _, conns := range []int{1, workerConns} {
			for _, depth := range t.depths {
				pairs = append(pairs, pair{
					goal:   goal.Goal{What: fmt.Sprintf("external tool, requests/s: %s / %s", t.kept.name, t.once.name), Must: t.must},
					member: fmt.Sprintf("%d×%d", conns, depth), noCPU: true,
					ours: b.lines(ours, t.kept, conns, depth, false), peer: b.lines(ours, t.once, conns, depth, false),
				})
			}
		}
	}
	return b.compare(pairs)
}
