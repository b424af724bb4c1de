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
		Files:    func(o *part.Options) uint64 { return uint64(o.Many + spareConns) },
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
