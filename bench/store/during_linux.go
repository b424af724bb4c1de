package store

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const (
	// touchEvery is how often something changes beside the load, as a table that only is read needs
	// no snapshot.
	touchEvery = 200 * time.Millisecond
	// pacedShare of what the server did with one request in flight on each connection, which is how
	// a paced load comes, is what it asks for: enough room that latency means something.
	pacedShare = 0.3
	pacedDepth = 64
	pacedSlice = 20 * time.Millisecond
	pacedTries = 4
)

// duringSnapshots measures the hot methods while snapshots of the large table are written, and
// beside that.
func (t *restarting) duringSnapshots() error {
	methods := []string{getProcess, recordUsage, transitionState}
	tapes, rates := map[string][]*load.Tape{}, map[string]float64{}
	for _, m := range methods {
		tapes[m] = tapesOf(m, span{0, t.Rows}, few.conns, nil)
		s, err := load.Measure(t.Config(t.s.Addr, load.Kernel, tapes[m], 1), t.s, t.Warmup, t.Window)
		if err != nil {
			return fmt.Errorf("cannot measure what %s can do: %w", m, err)
		}
		rates[m] = pacedShare * s.PerSec
	}
	if err := t.again(everySnapshot); err != nil {
		return err
	}
	table := goal.Grid{Title: "a paced load while snapshots are written", Head: []string{"method", "requests/s", "snapshots", "took s", "during one", "requests", "p50 µs", "p99 µs", "p99.9 µs"}}
	for _, m := range methods {
		if err := t.underLoad(m, tapes[m], rates[m], &table); err != nil {
			return fmt.Errorf("cannot measure %s during snapshots: %w", m, err)
		}
		fmt.Fprintf(os.Stderr, "%s during snapshots done\n", m)
	}
	t.Report.Table(table)
	return nil
}

// underLoad runs the load until it met snapshots and time without them, a few times at most: on a
// slow disk a snapshot takes long.
func (t *restarting) underLoad(method string, tapes []*load.Tape, rate float64, table *goal.Grid) error {
	beside, during := new(load.Histogram), new(load.Histogram)
	var took []float64
	for try := 0; try < pacedTries && (beside.Total() == 0 || during.Total() == 0); try++ {
		stop, touched := make(chan struct{}), make(chan error)
		go func() { touched <- t.keepTouching(stop) }()
		p, err := load.RunPaced(load.PacedConfig{Addr: t.s.Addr, Tapes: tapes, Depth: pacedDepth, PerSec: rate, For: t.paced, Slice: pacedSlice})
		close(stop)
		if err = cmp.Or(<-touched, err); err != nil {
			return err
		}
		for _, s := range split(p, logged(t.s.Output(), "snapshot written"), beside, during) {
			took = append(took, s.Secs)
		}
	}
	for when, h := range []*load.Histogram{beside, during} {
		table.Add(method, rate, len(took), goal.Median(took), []string{"no", "yes"}[when], h.Total(),
			goal.Micros(h.Quantile(0.5)), goal.Micros(h.Quantile(0.99)), goal.Micros(h.Quantile(0.999)))
	}
	return nil
}

// keepTouching changes something now and then.
func (t *restarting) keepTouching(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(touchEvery):
			if err := t.touch(); err != nil {
				<-stop
				return err
			}
		}
	}
}

// split adds the slices of a run to those beside and during snapshots, and returns the snapshots
// that the run met. What follows the last one counts nowhere: the next one may have begun.
func split(p *load.Paced, snapshots []entry, beside, during *load.Histogram) (met []entry) {
	free := p.Start
	for _, s := range snapshots {
		during.Merge(p.Between(s.from(), s.Time))
		beside.Merge(p.Between(free, s.from()))
		if free = s.Time; free.After(p.Start) {
			met = append(met, s)
		}
	}
	return met
}
