package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// memory is the server's resident memory around a scene, in bytes.
type memory struct{ before, peak, after int64 }

// result is everything a scene is evaluated by.
type result struct {
	scene         string
	note          string
	alone, during *load.Histogram
	memory        memory
	err           error
}

// limits are the bounds of the flags.
type limits struct {
	p99    time.Duration
	memory int64
}

// faults lists what is wrong; nothing means that the scene passed.
func (r result) faults(l limits) (out []string) {
	out = r.firm(l)
	if late := r.late(l); late != "" {
		out = append(out, late)
	}
	return out
}

// firm lists the faults that no busy machine excuses.
func (r result) firm(l limits) (out []string) {
	if r.err != nil {
		out = append(out, r.err.Error())
	}
	if r.during == nil || r.during.Total() == 0 {
		return append(out, "no reference request was answered")
	}
	if grown := r.memory.peak - r.memory.before; grown > l.memory {
		out = append(out, fmt.Sprintf("memory grew by %.1f MiB, more than %.1f", goal.MiB(grown), goal.MiB(l.memory)))
	}
	return out
}

// late reports that the reference load was too slow, "" if it was not.
func (r result) late(l limits) string {
	if r.during == nil {
		return ""
	}
	bound := max(l.p99, 10*r.alone.Quantile(0.99))
	if p99 := r.during.Quantile(0.99); p99 > bound {
		return fmt.Sprintf("reference p99 %v is above %v", p99, bound)
	}
	return ""
}

// text is the report of a scene and its verdict line.
func (r result) text(l limits) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.scene, r.note)
	line := func(name string, h *load.Histogram) {
		if h != nil {
			fmt.Fprintf(&b, "  reference %-7s p50 %v, p99 %v, p99.9 %v, %d requests\n", name, h.Quantile(0.5), h.Quantile(0.99), h.Quantile(0.999), h.Total())
		}
	}
	line("alone", r.alone)
	line("during", r.during)
	fmt.Fprintf(&b, "  server RSS before %.1f MiB, peak %.1f, after %.1f\n", goal.MiB(r.memory.before), goal.MiB(r.memory.peak), goal.MiB(r.memory.after))
	if faults := r.faults(l); len(faults) > 0 {
		fmt.Fprintf(&b, "  FAIL %s: %s\n", r.scene, strings.Join(faults, "; "))
	} else {
		fmt.Fprintf(&b, "  PASS %s\n", r.scene)
	}
	return b.String()
}

// peakWatch reads the server's memory every few milliseconds until stopped and remembers the
// highest: VmHWM is of the whole life of the process and would carry one scene's peak into the
// next.
type peakWatch struct {
	stop chan struct{}
	wg   sync.WaitGroup
	peak int64
}

const peakEvery = 20 * time.Millisecond

func watchPeak(server *load.Server) *peakWatch {
	w := &peakWatch{stop: make(chan struct{})}
	w.wg.Go(func() {
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			if m, err := server.Memory(); err == nil {
				w.peak = max(w.peak, m.RSS)
			}
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *peakWatch) end() int64 {
	close(w.stop)
	w.wg.Wait()
	return w.peak
}
