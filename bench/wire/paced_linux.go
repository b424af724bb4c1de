package main

import (
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// paced is what the cells of the paced load are called: GetProcess at a rate of its own.
const paced = evaluated + " paced"

const (
	// pacedSpan is the time between two bursts of one connection. The connections' bursts are
	// spread evenly over it.
	pacedSpan = time.Millisecond
	// pacedSlice is how finely the warm-up is separated from the rest.
	pacedSlice = 10 * time.Millisecond
)

// halfLoad is half of the requests/s that the slower of the two servers of G8 answers at full
// depth, 0 if one of them was not measured.
func halfLoad(all []goal.Sample, o options) float64 {
	return min(median(all, deep(trunkline, evaluated, o), goal.Rate), median(all, deep(baregnet, evaluated, o), goal.Rate)) / 2
}

// pacedSteps load the two servers of G8 at the same rate.
func (f *field) pacedSteps(rate float64) []goal.Step {
	return []goal.Step{f.pacedStep(f.bare[f.replies[evaluated]], baregnet, rate), f.pacedStep(f.trunk, trunkline, rate)}
}

func (f *field) pacedStep(s *load.Server, name string, rate float64) goal.Step {
	cfg := load.PacedConfig{
		Addr: s.Addr, Tapes: kernelTapes(evaluated, f.o.rows, f.o.conns), Depth: f.o.depth, PerSec: rate, For: f.o.warmup + 2*f.o.window, Slice: pacedSlice,
		Tick: pacedSpan / time.Duration(f.o.conns), Burst: f.o.depth, Spin: f.o.spin, CPUs: f.loadCPUs,
	}
	return goal.One(deep(name, paced, f.o), func() (goal.Sample, error) { return pacedCell(s, cfg, f.o.warmup) })
}

// pacedCell takes latencies from when a request was due, of those due after the warm-up. CPU time
// and rate are those of the whole run.
func pacedCell(s *load.Server, cfg load.PacedConfig, warmup time.Duration) (goal.Sample, error) {
	w, err := load.OpenWindow(s.PID(), 0)
	if err != nil {
		return goal.Sample{}, err
	}
	p, err := load.RunPaced(cfg)
	if err != nil {
		return goal.Sample{}, err
	}
	end := p.Start.Add(cfg.For + cfg.Slice)
	sample, err := w.Close(p.Between(p.Start, end).Total())
	h := p.Between(p.Start.Add(warmup), end)
	sample.P50, sample.P99, sample.P999 = goal.Micros(h.Quantile(0.5)), goal.Micros(h.Quantile(0.99)), goal.Micros(h.Quantile(0.999))
	return sample, err
}
