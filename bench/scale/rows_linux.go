package main

import (
	"fmt"
	"slices"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const (
	// smallRows is the table that the others are compared with.
	smallRows = 10_000
	// memoryRows is from where on a table's fixed part counts nothing beside its rows.
	memoryRows = 1_000_000
	// spareRows is room for processes that have ended: once it is full, each creation evicts one.
	spareRows = 4096
	// replace is the name of creation and termination by turns, each on average.
	replace = "Create+Terminate"
)

// rowMethods are measured at each size, in this order.
func rowMethods() []string {
	return []string{"GetProcess", "RecordUsage", "CheckQuota", "TransitionState", replace}
}

// filled is a server with a table and what filling it took.
type filled struct {
	*load.Server
	rows   int
	create float64 // CPU microseconds per creation while the table grew
	memory float64 // resident bytes per row
}

func (f *filled) name() string { return count(f.rows) + " rows" }

// fill starts a server and creates its rows.
func (b *bench) fill(rows int, settings ...string) (*filled, error) {
	s, err := b.start(append(table(rows), settings...)...)
	if err != nil {
		return nil, err
	}
	f := &filled{Server: s, rows: rows}
	return f, f.fill()
}

func (f *filled) fill() error {
	before, err := f.Memory()
	if err != nil {
		return err
	}
	cpu, err := f.CPU()
	if err != nil {
		return err
	}
	if err := load.CreateRows(f.Addr, 0, f.rows); err != nil {
		return err
	}
	filled, err := f.CPU()
	if err != nil {
		return err
	}
	after, err := f.Memory()
	f.create = float64(filled-cpu) / float64(f.rows) / float64(time.Microsecond)
	f.memory = float64(after.RSS-before.RSS) / float64(f.rows)
	return err
}

// tapes encodes the requests of a method about the rows of hands. A small hand is repeated, so that
// the generator reads as much of its own memory beside every table.
func tapes(method string, hands [][]int) []*load.Tape {
	if method == replace {
		return replaceTapes(len(hands))
	}
	encoders := load.RowEncoders(method)
	times := max(1, load.MaxTape/len(hands[0])/len(encoders))
	if times > 1 {
		for i := range encoders {
			encoders[i] = remembering(encoders[i])
		}
	}
	return load.Tapes(hands, slices.Repeat(encoders, times)...)
}

// remembering encodes each place once.
func remembering(encode load.Encoder) load.Encoder {
	known := map[load.Place][]byte{}
	return func(at load.Place) []byte {
		b, ok := known[at]
		if !ok {
			b = encode(at)
			known[at] = b
		}
		return b
	}
}

// replaceTapes creates and terminates processes with 36-byte identifiers that the tapes count up.
func replaceTapes(conns int) (tapes []*load.Tape) {
	for conn := range conns {
		tape := new(load.Tape)
		pid := load.Field{Key: "pid", Value: fmt.Sprintf("5ca%05x-0000-4000-8%s", conn, load.Placeholder)}
		tape.AddFresh(0, load.CountedRequest(conn, "kernel", "CreateProcess", pid, load.Field{Key: "request_id", Value: pid.Value},
			load.Field{Key: "user_id", Value: pid.Value}, load.Field{Key: "session_id", Value: pid.Value}))
		tape.Add(0, load.CountedRequest(conn, "kernel", "TerminateProcess", pid))
		tapes = append(tapes, tape)
	}
	return tapes
}

// rows measures tables of all sizes, which are up at the same time, in turns.
func (b *bench) rows() error {
	var all []*filled
	for _, rows := range tens(min(smallRows, b.o.rows/10), b.o.rows) {
		f, err := b.fill(rows)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	var steps []goal.Step
	hands := make([][][]int, len(all))
	for i, f := range all {
		hands[i] = load.Deal(0, f.rows, conns)
	}
	last := map[string]load.Config{} // of the largest table
	for _, method := range rowMethods() {
		for i, f := range all {
			last[method] = config(f.Server, tapes(method, hands[i]), depth)
			steps = append(steps, b.step(f.name(), method, f.Server, last[method]))
		}
	}
	samples, err := b.rounds(steps)
	if err != nil {
		return err
	}
	b.r.rows(all, samples)
	return b.profile(all[len(all)-1], last)
}

// rows makes charts and goals of what the tables showed; the first one is what the others are
// compared with.
func (r *report) rows(all []*filled, samples []goal.Sample) {
	cost := goal.Chart{Name: "rows", Title: "What a request costs as the table grows", X: "rows", Y: "server CPU µs/request"}
	growth := goal.Goal{ID: "G5", What: "growth of server CPU per request beside " + all[0].name(), Must: 2, Moonshot: 1.5}
	for _, method := range rowMethods() {
		for _, f := range all {
			at := rowCell(f.name(), method)
			cost.Add(method, float64(f.rows), median(samples, at, micros))
			if f != all[0] {
				growth.Add(method+" "+f.name(), goal.Ratio(samples, at, rowCell(all[0].name(), method), goal.CPU))
			}
		}
	}
	memory := goal.Chart{Name: "row-memory", Title: "Resident memory of a process as the table grows", X: "rows", Y: "bytes/row"}
	row := goal.Goal{ID: "G10", What: "resident bytes per live process with 36-byte identifiers", Must: 400, Moonshot: 256}
	for i, f := range all {
		cost.Add("CreateProcess while it grows", float64(f.rows), f.create)
		memory.Add("RSS", float64(f.rows), f.memory)
		if f.rows >= memoryRows || i == len(all)-1 {
			row.Add(f.name(), f.memory)
		}
	}
	r.Charts = append(r.Charts, cost, memory)
	r.evaluate(growth)
	r.evaluate(row)
}

func rowCell(server, method string) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: conns, Depth: depth}
}
