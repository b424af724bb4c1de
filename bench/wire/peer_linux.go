package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// enterPeer adds the kernel server at -peer, which another program started. Its CPU time and memory
// are reported where it runs on this machine as the same user.
func (f *field) enterPeer() error {
	if f.o.peer == "" {
		return nil
	}
	at, err := net.ResolveTCPAddr("tcp4", f.o.peer)
	if err != nil {
		return fmt.Errorf("cannot use the peer %q: %w", f.o.peer, err)
	}
	addr := at.String()
	if err := fill(addr, f.o.rows); err != nil {
		return err
	}
	pid := load.ListenerPID(addr)
	f.add(given, evaluated, func(conns, depth int) goal.Step { return f.givenStep(addr, pid, conns, depth) })
	return nil
}

// fill creates the rows, unless the last one is there from a run before.
func fill(addr string, rows int) error {
	_, err := load.Ask(addr, "kernel", evaluated, load.Field{Key: "pid", Value: load.PID(rows - 1)})
	var refused *load.Failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return fmt.Errorf("cannot ask the peer: %w", err)
	}
	return load.CreateRows(addr, 0, rows)
}

// givenStep leaves no sample where that server cannot be measured, as with more connections than it
// allows: that is its own affair and no reason to end the run. It is reported.
func (f *field) givenStep(addr string, pid, conns, depth int) goal.Step {
	cfg, c := f.config(addr, load.Kernel, kernelTapes(evaluated, f.o.rows, conns), depth), cell(given, evaluated, conns, depth)
	return goal.Step{Name: c.String(), Measure: func() ([]goal.Sample, error) {
		s, err := load.MeasureProcess(cfg, pid, f.o.warmup, f.o.window)
		if err != nil {
			what := fmt.Sprintf("cannot measure %s: %v", c, err)
			f.missing = append(f.missing, what)
			fmt.Fprintln(os.Stderr, what)
			return nil, nil
		}
		s.Cell = c
		return []goal.Sample{s}, nil
	}}
}
