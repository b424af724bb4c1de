// Package scale shows what the server costs as things grow: rows, idle connections, live data for
// the garbage collector, subscribers, payloads. It evaluates the goals G5, G7, G9 and G10.
//
// Sizes that are compared are up at the same time and take turns in every round; growth is the
// median over the rounds of the ratio within one round. The largest table, -rows, is ten million
// processes and takes some 6 GiB of memory.
//
// What it does not show: a network, more cores than the machine has, and what a server holds that
// has run for days. Structure within a payload costs more than its one text shows.
package scale

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	// conns and depth are the load of every measurement that does not name others.
	conns, depth = 64, 64
	// spareConns are the connections of a server beside those that are counted.
	spareConns = 200
	// spareRows is room for processes that have ended: once it is full, each creation evicts one.
	spareRows = 4096
)

// Part measures what grows.
func Part() part.Part {
	return part.Part{
		Name: "scale", What: "what grows: rows to 10M, idle connections, subscribers, payloads; and the collector",
		Defaults: func(o *part.Options) { o.Rows, o.Many, o.Window = 10_000_000, 10_000, 300*time.Millisecond },
		Quick:    func(o *part.Options) { o.Rows, o.Many = 100_000, 1000 },
		Run: func(r *part.Run) error {
			return r.Sections(part.Section{Name: "rows", Measure: rows}, part.Section{Name: "idle", Measure: idle}, part.Section{Name: "gc", Measure: collector},
				part.Section{Name: "subscribers", Measure: subscribers}, part.Section{Name: "payloads", Measure: payloads})
		},
	}
}

// way is how a server runs.
type way struct {
	name  string            // in its cells
	rows  int               // processes in its table
	apart bool              // the server on one half of the CPUs, its load on the other
	trace func(line string) // takes its output, with the runtime's trace of collections in it; nil: no trace
}

// server is a trunkline that runs in a way.
type server struct {
	*load.Server
	way
	memory float64 // resident bytes per row
	cpus   []int   // of its load
}

// start starts a server and creates its rows, which leaves a sample. As many users as rows would
// fill the rate limiter, which is not the table: it is kept small.
func (w way) start(r *part.Run, more ...string) (s *server, err error) {
	c := load.Trunkline(r.Binary, append(more, fmt.Sprintf("kernel.loops=%d", r.Loops),
		fmt.Sprintf("kernel.max_processes=%d", w.rows+spareRows), "kernel.max_rate_limit_users=1000")...)
	c.Env = []string{"GOGC=100"}
	if c.Line = w.trace; w.trace != nil {
		c.Env = append(c.Env, "GODEBUG=gctrace=1")
	}
	s = &server{way: w, cpus: r.LoadCPUs}
	if w.apart {
		defer func(before []int) { r.CPUs = before }(r.CPUs) // for the servers after it
		if s.cpus, err = r.Divide(); err != nil {
			return nil, err
		}
	}
	if s.Server, err = r.Start(c); err != nil || w.rows == 0 {
		return s, err
	}
	before, err := s.Memory()
	if err != nil {
		return nil, err
	}
	window, err := load.OpenWindow(s.PID(), 0)
	if err != nil {
		return nil, err
	}
	if err := load.CreateRows(s.Addr, 0, w.rows); err != nil {
		return nil, err
	}
	filled, err := window.Close(uint64(w.rows))
	filled.Cell = s.cell(create)
	r.Report.Samples = append(r.Report.Samples, filled)
	s.memory = float64(filled.RSS-before.RSS) / float64(w.rows)
	return s, err
}

// config is the load of tapes. The generator polls, so that the server does not pay for waking it.
func (s *server) config(tapes []*load.Tape) load.Config {
	return load.Config{Addr: s.Addr, Tapes: tapes, Depth: depth, Spin: true, CPUs: s.cpus}
}

func (s *server) cell(method string) goal.Cell {
	return goal.Cell{Server: s.name, Method: method, Conns: conns, Depth: depth}
}

// micros picks the server's CPU microseconds per request of a sample.
func micros(s goal.Sample) float64 { return s.CPU / 1e3 }

// tens are the sizes up to most by tens, from the one at or above least on.
func tens(least, most int) (sizes []int) {
	for n := most; n >= least; n /= 10 {
		sizes = append([]int{n}, sizes...)
	}
	return sizes
}

// count is a number in short form: 10k, 1M.
func count(n int) string {
	text := strconv.Itoa(n)
	if millions, ok := strings.CutSuffix(text, "000000"); ok {
		return millions + "M"
	} else if thousands, ok := strings.CutSuffix(text, "000"); ok {
		return thousands + "k"
	}
	return text
}

const (
	eventType = "scale.tick"
	// eventText is the text of an event: with its quotes about 100 bytes of JSON.
	eventText = 98
	// mostSubscribers is the largest crowd, evaluatedCrowd the one that the goal is about.
	mostSubscribers, evaluatedCrowd = 1000, 100
	// settle is how long a server may take to put away what it needed to greet a crowd.
	settle = 300 * time.Millisecond
	// idleRounds is how often a crowd is measured at the most: each time needs a new server.
	idleRounds = 3
)

// idle measures what a server holds for connections over TCP that asked once and are silent since.
// What the kernel holds for a socket is no memory of the process and is not in it.
func idle(r *part.Run) error {
	memory := goal.Chart{Name: "idle", Title: "Resident memory of an idle TCP connection, without what the kernel holds", X: "connections", Y: "bytes/connection"}
	g := goal.Goal{ID: "G10", What: "resident bytes per idle connection", Must: 3072, Moonshot: 2048}
	for _, n := range tens(min(1000, r.Many), r.Many) {
		var each []float64
		for range min(r.Options.Rounds, idleRounds) {
			v, err := silent(r, n)
			if err != nil {
				return err
			}
			each = append(each, v)
		}
		memory.Add("RSS", float64(n), goal.Median(each))
		g.Add(count(n)+" connections", goal.Median(each))
	}
	r.Report.Chart(memory)
	r.Report.Goal(g)
	return nil
}

// silent opens n connections to a server of its own, one after the other, and returns by how many
// bytes each made it grow. The first connection is not counted: with it comes what a server makes
// once.
func silent(r *part.Run, n int) (each float64, err error) {
	s, err := way{}.start(r, fmt.Sprintf("kernel.max_connections=%d", n+spareConns), "kernel.read_timeout_secs=0")
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	var before load.Memory
	for i := range n + 1 {
		c, err := load.Dial(s.Addr)
		if err != nil {
			return 0, err
		}
		defer c.Conn.Close() // without keeping the client's buffers
		if _, _, err := c.Call("kernel", "GetProcessCounts"); err != nil {
			return 0, fmt.Errorf("cannot use connection %d of %d: %w", i, n, err)
		}
		if i == 0 {
			time.Sleep(settle)
			if before, err = s.Memory(); err != nil {
				return 0, err
			}
		}
	}
	time.Sleep(settle)
	after, err := s.Memory()
	return float64(after.RSS-before.RSS) / float64(n), err
}

// subscribe starts a server and subscribers that take every event as fast as they can, one to a
// connection.
func subscribe(r *part.Run, n int) (s *server, readers *load.Session, err error) {
	s, err = way{name: fmt.Sprintf("%d subscribers", n)}.start(r, fmt.Sprintf("kernel.max_connections=%d", n+spareConns))
	if err != nil {
		return nil, nil, err
	}
	readers, err = load.Subscribe(s.Addr, eventType, n)
	return s, readers, err
}

// subscribers measures a publisher beside crowds of all sizes in turns. An event costs what a
// request of the publisher does over the subscribers that it reaches. With one event in flight
// every delivery is a write to a socket of its own, which the kernel's price bounds: it is
// reported, and the goal is about a pipelined publisher.
func subscribers(r *part.Run) error {
	sizes, depths := tens(1, min(mostSubscribers, r.Many)), []int{depth, 1}
	var steps []goal.Step
	var all []*server
	var readers []*load.Session
	for _, n := range sizes {
		s, each, err := subscribe(r, n)
		if err != nil {
			return err
		}
		for _, d := range depths {
			cfg := load.Config{Addr: s.Addr, Tapes: []*load.Tape{load.TapeOf(load.Publish(eventType, eventText, "scale"))}, Depth: d, CPUs: s.cpus}
			steps = append(steps, r.Step(s.published(d), s.Server, cfg))
		}
		all, readers = append(all, s), append(readers, each)
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	chart := goal.Chart{Name: "subscribers", Title: "What an event costs as subscribers grow", X: "subscribers", Y: "server CPU µs/event delivered"}
	lost := goal.Grid{Title: "Events, and those dropped because a subscriber was behind", Head: []string{"subscribers", "delivered", "dropped"}}
	g := goal.Goal{ID: "G9", What: "server CPU µs per event delivered", Must: 0.2, Moonshot: 0.1}
	for i, n := range sizes {
		for _, d := range depths {
			cost := r.Report.Median(all[i].published(d), micros) / float64(n)
			chart.Add(fmt.Sprintf("%d in flight", d), float64(n), cost)
			if n == evaluatedCrowd && d == depth {
				g.Add(all[i].published(d).String(), cost)
			}
		}
		m, err := all[i].Metrics()
		if err != nil {
			return err
		}
		lost.Add(n, readers[i].Chunks()-uint64(n), int(m["trunkline_bus_events_dropped_total"]))
	}
	r.Report.Chart(chart)
	r.Report.Table(lost)
	r.Report.Goal(g)
	return nil
}

func (s *server) published(depth int) goal.Cell {
	return goal.Cell{Server: s.name, Method: "Publish", Conns: 1, Depth: depth}
}
