package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"trunkline/bench/internal/load"
)

// The servers of the table.
const (
	trunkline = "trunkline"
	echo      = "echo"
	constant  = "constant"
	small     = "small program"
)

// workerConns is how many callers of an external tool there are in the cells with many: twice as many as it has processes.
const workerConns = 8

// cell names one row of the table.
type cell struct {
	Server string `json:"server"`
	Kind   string `json:"kind"`
	Via    string `json:"via"`
	Conns  int    `json:"connections"`
	Depth  int    `json:"in_flight"`
}

func (c cell) String() string {
	return fmt.Sprintf("%s %s over %s, %d×%d", c.Server, c.Kind, c.Via, c.Conns, c.Depth)
}

// step measures some cells once.
type step struct {
	name    string
	measure func() ([]sample, error)
}

// sample is what one cell showed in one round.
type sample struct {
	Cell     cell    `json:"-"`
	Round    int     `json:"round"`
	Requests uint64  `json:"requests"`
	PerSec   float64 `json:"requests_per_second"`
	CPU      float64 `json:"cpu_ns_per_request"` // of the server's process, without its children; 0: not read
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	RSS      int64   `json:"rss_bytes"`
}

// steps are the cells of one round.
func (b *bench) steps() (list []step) {
	one := func(c cell, measure func(c cell) (sample, error)) {
		list = append(list, step{c.String(), func() ([]sample, error) {
			s, err := measure(c)
			s.Cell = c
			return []sample{s}, err
		}})
	}
	if b.o.wants(partTCP) {
		for _, kind := range hot() {
			for _, conns := range connCounts(b.o) {
				one(cell{trunkline, kind, partTCP, conns, b.o.depth}, b.tcp)
				one(cell{echo, kind, partTCP, conns, b.o.depth}, b.tcp)
			}
		}
	}
	if b.o.wants(partPipes) {
		for _, kind := range hot() {
			one(cell{trunkline, kind, partPipes, 1, b.o.depth}, b.pipes)
			one(cell{constant, kind, partPipes, 1, b.o.depth}, b.pipes)
		}
	}
	if b.o.wants(partWorker) {
		for _, conns := range []int{1, workerConns} {
			for _, depth := range depths(b.o) {
				one(cell{trunkline, kept, partTCP, conns, depth}, b.tcp)
				one(cell{trunkline, perCall, partTCP, conns, depth}, b.tcp)
			}
		}
	}
	if b.o.wants(partScan) {
		list = append(list, step{"the field scan", b.scan})
	}
	if b.o.wants(partStart) {
		list = append(list, step{"starts", b.starts})
	}
	return list
}

func connCounts(o options) []int {
	if o.conns == 1 {
		return []int{1}
	}
	return []int{1, o.conns}
}

func depths(o options) []int {
	if o.depth == 1 {
		return []int{1}
	}
	return []int{1, o.depth}
}

// rounds measures all of them, each second one in the opposite order.
func (b *bench) rounds() (all []sample, err error) {
	steps := b.steps()
	for round := range b.o.rounds {
		for i := range steps {
			st := steps[i]
			if round%2 == 1 {
				st = steps[len(steps)-1-i]
			}
			got, err := st.measure()
			if err != nil {
				return nil, fmt.Errorf("cannot measure %s: %w", st.name, err)
			}
			for _, s := range got {
				s.Round = round
				all = append(all, s)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, b.o.rounds)
	}
	return all, nil
}

// tcp measures a cell over TCP.
func (b *bench) tcp(c cell) (sample, error) {
	server := b.trunk
	size := len(requests(c.Kind)[0])
	if c.Server == trunkline {
		var err error
		if size, err = primeAt(server.Addr, c.Kind); err != nil {
			return sample{}, err
		}
	} else {
		server = b.echo
	}
	session, err := load.Start(load.Config{Addr: server.Addr, Protocol: load.Lines, Reply: size, Tapes: tapes(c.Kind, c.Conns),
		Depth: c.Depth, Workers: b.o.workers, Spin: b.o.spin && slices.Contains(hot(), c.Kind)})
	if err != nil {
		return sample{}, err
	}
	time.Sleep(b.o.warmup)
	w, err := openWindow(server.PID(), session.Replies())
	if err == nil {
		session.Record(true)
		time.Sleep(b.o.window)
	}
	s, closeErr := w.close(session.Replies())
	session.Record(false)
	latency, stopErr := session.Stop()
	for _, err := range []error{stopErr, err, closeErr} {
		if err != nil {
			return sample{}, err
		}
	}
	s.P50, s.P99 = micros(latency.Quantile(0.5)), micros(latency.Quantile(0.99))
	return s, nil
}

// window is the measured part of a cell: what was counted before it.
type window struct {
	pid      int
	cpu      time.Duration
	start    time.Time
	requests uint64
}

func openWindow(pid int, requests uint64) (w window, err error) {
	w = window{pid: pid, requests: requests}
	w.cpu, err = load.CPU(pid)
	w.start = time.Now()
	return w, err
}

// close fills everything but the latencies.
func (w window) close(requests uint64) (sample, error) {
	elapsed := time.Since(w.start)
	s := sample{Requests: requests - w.requests}
	if s.Requests == 0 {
		return s, fmt.Errorf("no reply in %v", elapsed)
	}
	s.PerSec = float64(s.Requests) / elapsed.Seconds()
	cpu, err := load.CPU(w.pid)
	if err != nil {
		return s, err
	}
	s.CPU = float64(cpu-w.cpu) / float64(s.Requests)
	m, err := load.MemoryOf(w.pid)
	s.RSS = m.RSS
	return s, err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
