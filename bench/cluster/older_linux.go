package main

import (
	"errors"
	"fmt"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// What a single server may lose against an older program.
const (
	leastRate = 0.97
	mostCPU   = 1.03
)

// compare measures single servers of this program beside those of an older one, in each mode of the
// store. Where none is given there is nothing to measure.
func compare(r *part.Run, older string) error {
	if older == "" {
		if r.Only != nil {
			return errors.New("-older names no binary")
		}
		return nil
	}
	path, err := load.FindBinary(older, "", "")
	if err != nil {
		return err
	}
	programs := []struct{ name, path string }{{ours, r.Binary}, {"older", path}}
	cell := func(i int, mode string, at int) goal.Cell {
		return goal.Cell{Server: programs[i].name + ", " + mode, Method: recording, Conns: sizes[at].conns, Depth: sizes[at].depth}
	}
	modes := []string{"memory", "interval", "always"}
	var steps []goal.Step
	for _, mode := range modes {
		var servers []*load.Server
		for _, p := range programs {
			s, err := r.Start(load.Trunkline(p.path, server(r, mode)...))
			if err != nil {
				return err
			}
			if err := load.CreateRows(s.Addr, 0, r.Rows); err != nil {
				return err
			}
			servers = append(servers, s)
		}
		for at := range sizes {
			for i, s := range servers {
				tapes := load.Tapes(load.Deal(0, r.Rows, sizes[at].conns), load.RowEncoders(recording)...)
				steps = append(steps, r.Step(cell(i, mode, at), s, r.Config(s.Addr, load.Kernel, tapes, sizes[at].depth)))
			}
		}
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	rate := goal.Goal{What: "RecordUsage/s of a single server / of the older program", Must: leastRate, AtLeast: true}
	cpu := goal.Goal{What: "CPU of RecordUsage, a single server / the older program", Must: mostCPU}
	t := goal.Grid{Title: "a single server / the older program: median of the ratios within rounds, and quartiles", Head: []string{"mode", "in flight", "requests/s", "from", "to", "CPU", "from", "to"}}
	for _, mode := range modes {
		for at, size := range sizes {
			now, before := cell(0, mode, at), cell(1, mode, at)
			row := []any{mode, size.conns * size.depth}
			for _, pick := range []func(goal.Sample) float64{goal.Rate, goal.CPU} {
				all := goal.Ratios(r.Report.Samples, now, before, pick)
				row = append(row, goal.Median(all), goal.Quantile(all, 0.25), goal.Quantile(all, 0.75))
			}
			t.Add(row...)
			name := fmt.Sprintf("%s %d×%d", mode, size.conns, size.depth)
			rate.Add(name, r.Report.Ratio(now, before, goal.Rate))
			cpu.Add(name, r.Report.Ratio(now, before, goal.CPU))
		}
	}
	r.Report.Table(t)
	r.Report.Goal(rate)
	r.Report.Goal(cpu)
	return nil
}
