package scale

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	gcRows = 1_000_000
	// forceEvery is the time between two collections that are forced, under the load forced.
	forceEvery = 500 * time.Millisecond
	forced     = "hot methods, forced"
	// envelopeText is the text in each envelope of the mixed load.
	envelopeText = 1 << 10
)

// traceLine is a line that GODEBUG=gctrace=1 has the Go runtime write for each collection, with its
// three phases on the clock, of which the first and the third stop the program, and their CPU time:
// stop, assist by the program's own goroutines, background workers, workers on processors without
// other work, stop.
//
//	gc 7 @2.104s 0%: 0.018+1.3+0.002 ms clock, 0.037+0.33/1.2/0+0.004 ms cpu, …
var traceLine = regexp.MustCompile(`^gc \d+ @\S+ \d+%: ([\d.]+)\+[\d.]+\+([\d.]+) ms clock, ([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu`)

// collections are what a collector did in a while.
type collections struct {
	cycles int
	pause  float64 // milliseconds that the longest stop took
	cpu    float64 // milliseconds of CPU time, without sweeping
}

// trace adds up the collections of a server.
type trace struct {
	mu    sync.Mutex
	found collections // since they were taken last
}

// line takes a line of the server's output.
func (t *trace) line(text string) {
	m := traceLine.FindStringSubmatch(text)
	if m == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found.cycles++
	for i, text := range m[1:] {
		v, _ := strconv.ParseFloat(text, 64) // digits by the pattern; nonsense counts as 0
		if i < 2 {
			t.found.pause = max(t.found.pause, v)
		} else {
			t.found.cpu += v
		}
	}
}

func (t *trace) take() (found collections) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, t.found = t.found, found
	return found
}

// collector measures the garbage collector beside a large table. Hot methods allocate nothing, so
// there is a load with creations and envelopes beside them, and one with forced collections. The
// server has CPUs of its own: a stop waits for every thread of the server, and one that the kernel
// has put aside for the load would be waited for as long as the kernel's scheduler likes.
func collector(r *part.Run) error {
	rows, t := min(gcRows, r.Rows), new(trace)
	s, err := way{name: count(rows) + " rows, CPUs of its own", rows: rows, apart: true, trace: t.line}.start(r)
	if err != nil {
		return err
	}
	var encoders []load.Encoder
	for _, method := range hotMethods() {
		encoders = append(encoders, load.RowEncoders(method)...)
	}
	hot := load.Tapes(load.Deal(0, rows, conns), encoders...)
	// The hot half of the mixed load are tapes of the others: only they know in which state they
	// left their rows.
	mixed := append(slices.Clone(hot[:conns/2]), replaceTapes(conns/4)...)
	for len(mixed) < conns {
		requests, err := carry(s.Addr, envelopeText)
		if err != nil {
			return err
		}
		mixed = append(mixed, load.TapeOf(requests[updated]))
	}
	found := map[goal.Cell]collections{}
	for _, x := range []struct {
		name    string
		tapes   []*load.Tape
		windows time.Duration // for so many: under the mixed load, collections are seconds apart
	}{{"hot methods", hot, 8}, {"mixed load", mixed, 32}, {forced, hot, 12}} {
		// The warm-up is a load of its own, whose collections do not count.
		_, err := load.Measure(s.config(x.tapes), s.Server, 0, r.Warmup)
		if err != nil {
			return err
		}
		t.take()
		var beside sync.WaitGroup
		var forceErr error
		if x.name == forced {
			beside.Go(func() {
				for end := time.Now().Add(x.windows * r.Window); forceErr == nil && time.Now().Before(end); time.Sleep(forceEvery) {
					forceErr = s.Download("/debug/pprof/heap?gc=1", os.DevNull, 10*time.Second)
				}
			})
		}
		sample, err := load.Measure(s.config(x.tapes), s.Server, 0, x.windows*r.Window)
		beside.Wait()
		if err := errors.Join(err, forceErr); err != nil {
			return err
		}
		sample.Cell = s.cell(x.name)
		r.Report.Samples, found[sample.Cell] = append(r.Report.Samples, sample), t.take()
	}
	m, err := s.Metrics()
	pauses(r.Report, rows, found, 1e3*m[`go_gc_duration_seconds{quantile="1"}`])
	return err
}

// pauses makes a table and goals of what the loads showed. What forced collections cost is reported
// only: their rate is ours.
func pauses(r *part.Report, rows int, found map[goal.Cell]collections, life float64) {
	t := goal.Grid{Title: fmt.Sprintf("The garbage collector beside %s live processes", count(rows)), Head: []string{"load", "collections", "worst pause ms", "share of CPU %"}}
	pause := goal.Goal{ID: "G7", What: fmt.Sprintf("worst GC pause at %s live rows, ms", count(rows)), Must: 0.3, Moonshot: 0.1}
	share := goal.Goal{ID: "G7", What: fmt.Sprintf("GC share of server CPU at %s live rows, %%", count(rows)), Must: 1, Moonshot: 0.5}
	for _, s := range r.Samples {
		c, ok := found[s.Cell]
		if !ok {
			continue
		}
		percent := 100 * c.cpu / (s.CPU * float64(s.Requests) / 1e6)
		t.Add(s.Cell.Method, c.cycles, c.pause, percent)
		pause.Add(s.Cell.Method, c.pause)
		if s.Cell.Method != forced {
			share.Add(s.Cell.Method, percent)
		}
	}
	t.Add("all since its start, both stops of a collection", nil, life, nil)
	r.Table(t)
	r.Goal(pause)
	r.Goal(share)
}
