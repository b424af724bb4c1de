package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// spareConns are the connections of a server beside those that are counted.
const spareConns = 200

// bench is a run: where the servers are, what was asked for, and what came out so far.
type bench struct {
	*load.Rig
	o options
	r *report
}

// start starts a server with the loops of the run and, above that, these settings.
func (b *bench) start(settings ...string) (*load.Server, error) {
	return b.Trunkline(append([]string{"kernel.loops=" + strconv.Itoa(b.o.loops)}, settings...)...)
}

// table returns settings for a server with a table of that many rows, and as many ended ones as
// spareRows. As many users as rows would fill the rate limiter, which is not the table: it is kept
// small.
func table(rows int) []string {
	return []string{fmt.Sprintf("kernel.max_processes=%d", rows+spareRows), "kernel.max_rate_limit_users=1000"}
}

// config is the load of the tapes at a depth. The generator polls, so that a server does not pay
// for waking it.
func config(s *load.Server, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: s.Addr, Tapes: tapes, Depth: depth, Spin: depth > 1}
}

// step measures one cell under a load.
func (b *bench) step(server, method string, s *load.Server, cfg load.Config) goal.Step {
	c := goal.Cell{Server: server, Method: method, Conns: len(cfg.Tapes), Depth: cfg.Depth}
	return goal.One(c, func() (goal.Sample, error) { return load.Measure(cfg, s, b.o.warmup, b.o.window) })
}

// rounds takes the steps in turns and keeps their medians for the report.
func (b *bench) rounds(steps []goal.Step) ([]goal.Sample, error) {
	all, err := goal.Rounds(b.o.rounds, steps, io.Discard)
	b.r.Cells = append(b.r.Cells, goal.Summarize(all)...)
	return all, err
}

// median is the median over the rounds of a cell's figure.
func median(all []goal.Sample, c goal.Cell, pick func(goal.Sample) float64) float64 {
	var v []float64
	for _, s := range all {
		if s.Cell == c {
			v = append(v, pick(s))
		}
	}
	return goal.Median(v)
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
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return strconv.Itoa(n/1_000_000) + "M"
	case n >= 1000 && n%1000 == 0:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// adminOf returns the address of a server's admin listener, which it names after the one that a
// start waits for.
func adminOf(s *load.Server) (admin string, err error) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if admin, err = s.Admin(); err == nil || time.Now().After(end) {
			return admin, err
		}
	}
}
