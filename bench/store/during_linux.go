package main

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const (
	// watchEvery is how often the server's log is looked at for a snapshot: how exactly its end is
	// known.
	watchEvery = 5 * time.Millisecond
	// touchEvery is how often something changes beside the load, as a table that only is read needs
	// no snapshot.
	touchEvery = 200 * time.Millisecond
	// pacedShare of what the server did with one request in flight on each connection, which is how
	// a paced load comes, is what it asks for: enough room that latency means something.
	pacedShare = 0.3
	pacedConns = 64
	pacedDepth = 64
	pacedSlice = 20 * time.Millisecond
	pacedTries = 4
)

// latency is one method under a paced load, apart by whether a snapshot was being written when the
// request was due.
type latency struct {
	Method    string    `json:"method"`
	PerSec    float64   `json:"requests_per_second"`
	Snapshots int       `json:"snapshots"`
	Took      float64   `json:"snapshot_seconds"` // median
	Beside    quantiles `json:"without_snapshot"`
	During    quantiles `json:"during_snapshot"`
}

type quantiles struct {
	Requests uint64  `json:"requests"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
}

func quantilesOf(h *load.Histogram) quantiles {
	return quantiles{h.Total(), goal.Micros(h.Quantile(0.5)), goal.Micros(h.Quantile(0.99)), goal.Micros(h.Quantile(0.999))}
}

// period is a time in which a snapshot was being written.
type period struct{ from, to time.Time }

// watcher notes the snapshots of a server and keeps it changing.
type watcher struct {
	t    *restarting
	stop chan struct{}
	wg   sync.WaitGroup
	seen []period // read after end
	err  error
}

func (t *restarting) watch() *watcher {
	w := &watcher{t: t, stop: make(chan struct{})}
	w.wg.Go(w.run)
	return w
}

func (w *watcher) run() {
	look, touch := time.NewTicker(watchEvery), time.NewTicker(touchEvery)
	defer look.Stop()
	defer touch.Stop()
	last := logged(w.t.s.Output(), "snapshot written", "index")
	for {
		select {
		case <-w.stop:
			return
		case <-touch.C:
			if w.err == nil {
				w.err = w.t.touch()
			}
		case now := <-look.C:
			output := w.t.s.Output()
			if index := logged(output, "snapshot written", "index"); index != last {
				last = index
				took := time.Duration(logged(output, "snapshot written", "secs") * float64(time.Second))
				w.seen = append(w.seen, period{now.Add(-took), now})
			}
		}
	}
}

// end stops the watch and returns what was seen.
func (w *watcher) end() ([]period, error) {
	close(w.stop)
	w.wg.Wait()
	return w.seen, w.err
}

// duringSnapshots measures the hot methods while snapshots of the large table are written, and
// beside that.
func (t *restarting) duringSnapshots(r *report) error {
	methods := []string{getProcess, recordUsage, transitionState}
	tapes, rates := map[string][]*load.Tape{}, map[string]float64{}
	for _, m := range methods {
		tapes[m] = tapesOf(m, span{0, t.rows}, pacedConns, nil)
		s, err := load.Measure(t.config(t.s.Addr, load.Kernel, tapes[m], 1), t.s, t.o.warmup, t.o.window)
		if err != nil {
			return fmt.Errorf("cannot measure what %s can do: %w", m, err)
		}
		rates[m] = pacedShare * s.PerSec
	}
	if err := t.again(everySnapshot); err != nil {
		return err
	}
	for _, m := range methods {
		l, err := t.paced(m, tapes[m], rates[m])
		if err != nil {
			return fmt.Errorf("cannot measure %s during snapshots: %w", m, err)
		}
		r.Latencies = append(r.Latencies, l)
		fmt.Fprintf(os.Stderr, "%s during snapshots done\n", m)
	}
	return nil
}

// paced runs the load until it met snapshots and time without them, a few times at most: on a slow
// disk a snapshot takes long.
func (t *restarting) paced(method string, tapes []*load.Tape, rate float64) (latency, error) {
	beside, during := new(load.Histogram), new(load.Histogram)
	var took []float64
	for try := 0; try < pacedTries && (beside.Total() == 0 || during.Total() == 0); try++ {
		w := t.watch()
		p, err := load.RunPaced(load.PacedConfig{Addr: t.s.Addr, Tapes: tapes, Depth: pacedDepth, PerSec: rate, For: t.o.paced, Slice: pacedSlice})
		seen, watchErr := w.end()
		if err = cmp.Or(err, watchErr); err != nil {
			return latency{}, err
		}
		b, d := split(p, seen)
		beside.Merge(b)
		during.Merge(d)
		for _, s := range seen {
			took = append(took, s.to.Sub(s.from).Seconds())
		}
	}
	return latency{method, rate, len(took), goal.Median(took), quantilesOf(beside), quantilesOf(during)}, nil
}

// split takes the slices of a run apart. What follows the last snapshot counts nowhere: the next
// one may have begun.
func split(p *load.Paced, snapshots []period) (beside, during *load.Histogram) {
	beside, during = new(load.Histogram), new(load.Histogram)
	free := p.Start
	for _, s := range snapshots {
		during.Merge(p.Between(s.from, s.to))
		beside.Merge(p.Between(free, s.from))
		free = s.to
	}
	return beside, during
}
