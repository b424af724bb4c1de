package main

import (
	"slices"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// The servers of the table.
const (
	trunkline = "trunkline"
	echo      = "echo"
	constant  = "constant"
	small     = "small program"
)

// workerConns is how many callers of an external tool there are in the cells with many: twice as
// many as it has processes.
const workerConns = 8

// cell is a server under the load of a kind.
func cell(server, kind, via string, conns, depth int) goal.Cell {
	return goal.Cell{Server: server, Method: kind, Via: via, Conns: conns, Depth: depth}
}

// steps are the cells of one round.
func (b *bench) steps() (list []goal.Step) {
	one := func(c goal.Cell, measure func(c goal.Cell) (goal.Sample, error)) {
		list = append(list, goal.One(c, func() (goal.Sample, error) { return measure(c) }))
	}
	if b.o.wants(partTCP) {
		for _, kind := range hot() {
			for _, conns := range connCounts(b.o) {
				one(cell(trunkline, kind, partTCP, conns, b.o.depth), b.tcp)
				one(cell(echo, kind, partTCP, conns, b.o.depth), b.tcp)
			}
		}
	}
	if b.o.wants(partPipes) {
		for _, kind := range hot() {
			one(cell(trunkline, kind, partPipes, 1, b.o.depth), b.pipes)
			one(cell(constant, kind, partPipes, 1, b.o.depth), b.pipes)
		}
	}
	if b.o.wants(partWorker) {
		for _, conns := range []int{1, workerConns} {
			for _, depth := range depths(b.o) {
				one(cell(trunkline, kept, partTCP, conns, depth), b.tcp)
				one(cell(trunkline, perCall, partTCP, conns, depth), b.tcp)
				if b.python != "" && depth == 1 { // a queue of starts would take longer than a round
					one(cell(trunkline, keptPy, partTCP, conns, depth), b.tcp)
					one(cell(trunkline, perCallPy, partTCP, conns, depth), b.tcp)
				}
			}
		}
	}
	if b.o.wants(partScan) {
		list = append(list, goal.Step{Name: "the field scan", Measure: b.scan})
	}
	if b.o.wants(partStart) {
		list = append(list, goal.Step{Name: "starts", Measure: b.starts})
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

// tcp measures a cell over TCP.
func (b *bench) tcp(c goal.Cell) (goal.Sample, error) {
	server, size := b.trunk, len(requests(c.Method)[0])
	if c.Server == trunkline {
		var err error
		if size, err = primeAt(server.Addr, c.Method); err != nil {
			return goal.Sample{}, err
		}
	} else {
		server = b.echo
	}
	cfg := load.Config{Addr: server.Addr, Protocol: load.Lines, Reply: size, Tapes: tapes(c.Method, c.Conns), Depth: c.Depth,
		Workers: b.o.workers, Spin: b.o.spin && slices.Contains(hot(), c.Method)}
	return load.Measure(cfg, server, b.o.warmup, b.o.window)
}
