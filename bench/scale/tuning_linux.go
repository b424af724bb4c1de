package main

import (
	"fmt"
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// tuningRows is the table of every variant: larger than the cache nearest to a core.
const tuningRows = 100_000

// variant is a way to run the server.
type variant struct {
	name  string
	loops int
	gogc  int
	pin   bool // the server on one half of the CPUs, the load on the other
}

// defaultName is the variant that the others are compared with.
const defaultName = "1 loop, GOGC 100"

// variants are compared in this order; the first one has the defaults of a machine with two CPUs.
func variants() []variant {
	return []variant{{name: defaultName, loops: 1, gogc: 100}, {name: "2 loops", loops: 2, gogc: 100},
		{name: "1 loop, CPUs of its own", loops: 1, gogc: 100, pin: true}, {name: "GOGC 50", loops: 1, gogc: 50},
		{name: "GOGC 200", loops: 1, gogc: 200}, {name: "GOGC 400", loops: 1, gogc: 400}}
}

// tuningLoads are what every variant is loaded with, in the order of their tapes.
func tuningLoads() []string { return []string{"GetProcess", replace} }

// tuning compares settings of the server under the same load in turns.
func (b *bench) tuning() error {
	rows := min(tuningRows, b.o.rows)
	get := tapes(tuningLoads()[0], load.Deal(0, rows, conns)) // where they stand is all the same to every server
	var steps []goal.Step
	for _, v := range variants() {
		s, loadCPUs, err := b.variant(v, rows)
		if err != nil {
			return err
		}
		for i, tapes := range [][]*load.Tape{get, replaceTapes(conns)} {
			cfg := config(s, tapes, depth)
			cfg.CPUs = loadCPUs
			steps = append(steps, b.step(v.name, tuningLoads()[i], s, cfg))
		}
	}
	samples, err := b.rounds(steps)
	if err != nil {
		return err
	}
	b.r.tuning(rows, samples)
	return nil
}

// variant starts the server in one way and fills it.
func (b *bench) variant(v variant, rows int) (s *load.Server, loadCPUs []int, err error) {
	if v.pin {
		if loadCPUs, err = b.Divide(); err != nil {
			return nil, nil, err
		}
		defer func() { b.CPUs = nil }()
	}
	c := load.Trunkline(b.Binary, append(table(rows), "kernel.loops="+strconv.Itoa(v.loops))...)
	c.Env = []string{"GOGC=" + strconv.Itoa(v.gogc)}
	if s, err = b.Start(c); err != nil {
		return nil, nil, err
	}
	return s, loadCPUs, load.CreateRows(s.Addr, 0, rows)
}

func (r *report) tuning(rows int, samples []goal.Sample) {
	t := grid{Name: "tuning", Title: fmt.Sprintf("Settings of the server, %s rows, %d connections × %d in flight; ratios to %q in the same round", count(rows), conns, depth, defaultName),
		Head: []string{"variant", "load", "server CPU µs/req", "CPU ratio", "requests/s", "requests/s ratio", "p99 µs", "RSS MiB"}}
	for _, method := range tuningLoads() {
		base := rowCell(defaultName, method)
		for _, v := range variants() {
			at := rowCell(v.name, method)
			t.Rows = append(t.Rows, []string{v.name, method, figure(median(samples, at, micros)), figure(goal.Ratio(samples, at, base, goal.CPU)),
				figure(median(samples, at, goal.Rate)), figure(goal.Ratio(samples, at, base, goal.Rate)),
				figure(median(samples, at, func(s goal.Sample) float64 { return s.P99 })),
				figure(median(samples, at, func(s goal.Sample) float64 { return goal.MiB(s.RSS) }))})
		}
	}
	r.Tables = append(r.Tables, t)
}
