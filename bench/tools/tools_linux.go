package tools

import (
	"flag"
	"fmt"
	"net"
	"regexp"
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
	// mustScan and mustWorker are asked of the field scan beside other libraries, and of kept
	// processes beside one for each call.
	mustScan, mustWorker = 1.5, 50
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
		Files:    func(o *part.Options) uint64 { return uint64(4 * (o.Conns + 256)) },
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
	return r.Sections(section("tcp", b.tcp), section("pipes", b.pipes), section("worker", b.workers), section("scan", b.scan), section("start", b.start))
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
	var steps []goal.Step
	for _, k := range hot() {
		for _, conns := range counts(b.Conns) {
			steps = append(steps, b.lines(ours, k, conns, b.Depth, b.Spin), b.lines(peer, k, conns, b.Depth, b.Spin))
		}
	}
	if err := b.Rounds(steps); err != nil {
		return err
	}
	for _, k := range hot() {
		for _, conns := range counts(b.Conns) {
			g := goal.Goal{What: fmt.Sprintf("tool lines over TCP, %d×%d, requests/s over a bare echo, %s", conns, b.Depth, k.name)}
			if conns > 1 {
				g.ID, g.Must, g.Moonshot = "G15", k.must, k.moonshot
			}
			b.against(g, k.name, lineCell(trunkline, k.name, conns, b.Depth), echo)
		}
	}
	return nil
}

// counts are one connection and many.
func counts(many int) []int {
	if many == 1 {
		return []int{1}
	}
	return []int{1, many}
}

func lineCell(server, kind string, conns, depth int) goal.Cell {
	return goal.Cell{Server: server, Method: kind, Via: "tcp", Conns: conns, Depth: depth}
}

// lines is the step of a cell over TCP. The tool server is primed; an echo is as long as the
// request.
func (b *bench) lines(s *load.Server, k kind, conns, depth int, spin bool) goal.Step {
	return goal.One(lineCell(s.Name, k.name, conns, depth), func() (goal.Sample, error) {
		cfg := b.Config(s.Addr, load.Lines, k.tapes(conns), depth)
		cfg.Reply, cfg.Spin = len(k.requests()[0]), spin
		if s.Name == trunkline {
			var err error
			if cfg.Reply, err = primeAt(s.Addr, k); err != nil {
				return goal.Sample{}, err
			}
		}
		return load.Measure(cfg, s, b.Warmup, b.Window)
	})
}

// primeAt primes a kind over a connection of its own.
func primeAt(addr string, k kind) (size int, err error) {
	c, err := net.DialTimeout("tcp", addr, primeTimeout)
	if err != nil {
		return 0, fmt.Errorf("cannot prime %s: %w", k.name, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(primeTimeout)); err != nil {
		return 0, err
	}
	return k.prime(c)
}

// against evaluates a goal about the ratio of requests/s of a cell and the peer's, and reports that
// of CPU time.
func (b *bench) against(g goal.Goal, name string, ours goal.Cell, server string) {
	peer := ours
	peer.Server, g.AtLeast = server, true
	g.AddCPU(name, b.Report.Ratio(ours, peer, goal.Rate), b.Report.Ratio(peer, ours, goal.CPU))
	b.Report.Goal(g)
}

// workers measures external tools on kept processes and with a process for each call.
func (b *bench) workers() error {
	ours, err := b.serve()
	if err != nil {
		return err
	}
	type size struct{ conns, depth int }
	pairs := []struct {
		kept, once kind
		at         []size
		must       float64
	}{
		{external("kept process", keptAID), external("process per call", perCallAID), []size{{1, 1}, {1, b.Depth}, {workerConns, 1}, {workerConns, b.Depth}}, 0},
		// A queue of starts would take longer than a round.
		{external("kept python3", keptPyAID), external("python3 per call", oncePyAID), []size{{1, 1}, {workerConns, 1}}, mustWorker},
	}
	if b.python == "" {
		b.Report.Note("There is no python3: its tools were not measured.")
		pairs = pairs[:1]
	}
	var steps []goal.Step
	for _, p := range pairs {
		for _, at := range p.at {
			steps = append(steps, b.lines(ours, p.kept, at.conns, at.depth, false), b.lines(ours, p.once, at.conns, at.depth, false))
		}
	}
	if err := b.Rounds(steps); err != nil {
		return err
	}
	for _, p := range pairs {
		g := goal.Goal{What: fmt.Sprintf("external tool, requests/s: %s / %s", p.kept.name, p.once.name), Must: p.must, AtLeast: true}
		for _, at := range p.at { // the CPU time of tools is not the server's
			g.Add(fmt.Sprintf("%d×%d", at.conns, at.depth),
				b.Report.Ratio(lineCell(trunkline, p.kept.name, at.conns, at.depth), lineCell(trunkline, p.once.name, at.conns, at.depth), goal.Rate))
		}
		b.Report.Goal(g)
	}
	return nil
}
