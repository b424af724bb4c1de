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
	// gcWindows is for how many windows each load is followed: collections are seconds apart.
	gcWindows = 16
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

// add takes a line of a server's output.
func (c *collections) add(line string) {
	m := traceLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	c.cycles++
	for i, text := range m[1:] {
		v, _ := strconv.ParseFloat(text, 64) // digits by the pattern; nonsense counts as 0
		if i < 2 {
			c.pause = max(c.pause, v)
		} else {
			c.cpu += v
		}
	}
}

// traced is a server that reports its collections.
type traced struct {
	*server
	mu    sync.Mutex
	found collections // since they were taken last
}

func (t *traced) take() (found collections) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, t.found = t.found, found
	return found
}

// startTraced gives the server and the load CPUs of their own: a stop waits for every thread of the
// server, and one that the kernel has put aside for the load would be waited for as long as the
// kernel's scheduler likes.
func startTraced(r *part.Run, rows int) (t *traced, err error) {
	t = new(traced)
	t.server, err = way{name: count(rows) + " rows, CPUs of its own", apart: true, trace: func(line string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.found.add(line)
	}}.start(r, rows)
	return t, err
}

// collector measures the garbage collector beside a large table. Hot methods allocate nothing, so
// there is a load with creations and envelopes beside them, and one with forced collections.
func collector(r *part.Run) error {
	t, err := startTraced(r, min(gcRows, r.Rows))
	if err != nil {
		return err
	}
	var encoders []load.Encoder
	for _, method := range hotMethods() {
		encoders = append(encoders, load.RowEncoders(method)...)
	}
	hot := load.Tapes(load.Deal(0, t.rows, conns), encoders...)
	// The hot half of the mixed load are tapes of the others: only they know in which state they
	// left their rows.
	mixed := append(slices.Clone(hot[:conns/2]), replaceTapes(conns/4)...)
	for len(mixed) < conns {
		requests, err := carry(t.Addr, envelopeText)
		if err != nil {
			return err
		}
		mixed = append(mixed, tapeOf(requests[updated]))
	}
	found := map[goal.Cell]collections{}
	for _, x := range []struct {
		name  string
		tapes []*load.Tape
	}{{"hot methods", hot}, {"mixed load", mixed}, {forced, hot}} {
		s, c, err := t.measure(r, x.name, x.tapes)
		if err != nil {
			return err
		}
		r.Report.Samples, found[s.Cell] = append(r.Report.Samples, s), c
	}
	m, err := t.Metrics()
	pauses(r.Report, t.rows, found, 1e3*m[`go_gc_duration_seconds{quantile="1"}`])
	return err
}

// measure loads the server for a while and follows its collections.
func (t *traced) measure(r *part.Run, name string, tapes []*load.Tape) (s goal.Sample, found collections, err error) {
	session, err := load.Start(t.config(tapes))
	if err != nil {
		return s, found, err
	}
	time.Sleep(r.Warmup)
	t.take()
	w, err := load.OpenWindow(t.PID(), session.Replies())
	for end := time.Now().Add(gcWindows * r.Window); err == nil && time.Now().Before(end); {
		if name == forced { // as a look at the heap does
			err = t.Download("/debug/pprof/heap?gc=1", os.DevNull, 10*time.Second)
		}
		time.Sleep(min(forceEvery, time.Until(end)))
	}
	found = t.take()
	if err == nil {
		s, err = w.Close(session.Replies())
	}
	_, stopErr := session.Stop()
	s.Cell = t.cell(name)
	return s, found, errors.Join(err, stopErr)
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
