package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// forceEvery is the time between two collections that are forced.
const forceEvery = 500 * time.Millisecond

// envelopeText is the text in each envelope of the mixed load.
const envelopeText = 1 << 10

// gcBench is a server that reports its collections.
type gcBench struct {
	*filled
	admin    string
	tracer   tracer
	loadCPUs []int
	warmup   time.Duration
	window   time.Duration
}

// collector measures the garbage collector beside a large table.
func (b *bench) collector() error {
	rows := b.o.gcRows
	g, err := b.traced(rows)
	if err != nil {
		return err
	}
	if err := g.fill(); err != nil {
		return err
	}
	hot := hotTapes(load.Deal(0, rows, conns))
	mixed, err := mixedTapes(g.Addr, hot[:conns/2])
	if err != nil {
		return err
	}
	var all []collected
	for _, w := range []struct {
		name  string
		tapes []*load.Tape
		every time.Duration
	}{{"hot methods", hot, 0}, {"mixed load", mixed, 0}, {"hot methods, forced", hot, forceEvery}} {
		got, err := g.measure(w.name, w.tapes, w.every)
		if err != nil {
			return err
		}
		all = append(all, got)
	}
	metrics, err := load.Metrics(g.admin)
	b.r.collector(rows, all, 1e3*metrics[`go_gc_duration_seconds{quantile="1"}`])
	return err
}

// traced starts a server that reports its collections. It and the load have CPUs of their own: a
// stop waits for every thread of the server, and one that the load keeps off its processor would be
// waited for as long as the load likes.
func (b *bench) traced(rows int) (*gcBench, error) {
	loadCPUs, err := b.Divide()
	if err != nil {
		return nil, err
	}
	defer func() { b.CPUs = nil }()
	c := load.Trunkline(b.Binary, append(table(rows), fmt.Sprintf("kernel.loops=%d", b.o.loops))...)
	c.Env = []string{"GODEBUG=gctrace=1"}
	s, err := b.Start(c)
	if err != nil {
		return nil, err
	}
	g := &gcBench{filled: &filled{Server: s, rows: rows}, tracer: tracer{server: s}, loadCPUs: loadCPUs, warmup: b.o.warmup, window: b.o.gcWindow}
	// The output is kept for its last lines only, and collections will fill it.
	g.admin, err = adminOf(s)
	return g, err
}

// hotTapes asks, records and takes rows from state to state.
func hotTapes(hands [][]int) []*load.Tape {
	var encoders []load.Encoder
	for _, method := range []string{"GetProcess", "RecordUsage", "CheckQuota", "TransitionState"} {
		encoders = append(encoders, load.RowEncoders(method)...)
	}
	return load.Tapes(hands, encoders...)
}

// mixedTapes adds to tapes of hot methods half as many that create and terminate processes, and
// half as many that update envelopes. The hot ones are those of the other loads: only they know in
// which state they left their rows.
func mixedTapes(addr string, hot []*load.Tape) ([]*load.Tape, error) {
	all := append(slices.Clone(hot), replaceTapes(len(hot)/2)...)
	for range len(hot) / 2 {
		request, err := updateRequest(addr, envelopeText)
		if err != nil {
			return nil, err
		}
		tape := new(load.Tape)
		tape.Add(0, request)
		all = append(all, tape)
	}
	return all, nil
}

// measure loads the server for a window and follows its collections, forcing some if every is not
// 0.
func (g *gcBench) measure(name string, tapes []*load.Tape, every time.Duration) (collected, error) {
	cfg := config(g.Server, tapes, depth)
	cfg.CPUs = g.loadCPUs
	session, err := load.Start(cfg)
	if err != nil {
		return collected{}, err
	}
	s, err := g.watch(session, every)
	_, stopErr := session.Stop()
	return collectedIn(name, g.tracer.found, s), errors.Join(err, stopErr)
}

func (g *gcBench) watch(session *load.Session, every time.Duration) (goal.Sample, error) {
	g.tracer.follow(g.warmup)
	g.tracer.found = nil
	w, err := load.OpenWindow(g.PID(), session.Replies())
	if err != nil {
		return goal.Sample{}, err
	}
	for end := time.Now().Add(g.window); time.Now().Before(end); {
		if every == 0 {
			g.tracer.follow(g.window)
			continue
		}
		if err := collect(g.admin); err != nil {
			return goal.Sample{}, err
		}
		g.tracer.follow(every)
	}
	return w.Close(session.Replies())
}

// collect has a server collect its garbage, as a look at its heap does.
func collect(admin string) error {
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get("http://" + admin + "/debug/pprof/heap?gc=1")
	if err != nil {
		return fmt.Errorf("cannot force a collection: %w", err)
	}
	defer res.Body.Close()
	if _, err = io.Copy(io.Discard, res.Body); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("cannot force a collection: %s", res.Status)
	}
	return err
}

// collector makes a table and goals of what the windows showed. What forced collections cost is
// reported only: their rate is ours.
func (r *report) collector(rows int, all []collected, life float64) {
	t := grid{Name: "gc", Title: fmt.Sprintf("The garbage collector beside %s live processes, %d connections × %d in flight", count(rows), conns, depth),
		Head: []string{"load", "requests/s", "server CPU µs/req", "collections", "worst pause ms", "share of CPU %", "RSS MiB"}}
	pause := goal.Goal{ID: "G7", What: fmt.Sprintf("worst GC pause at %s live rows, ms", count(rows)), Must: 1, Moonshot: 0.3}
	share := goal.Goal{ID: "G7", What: fmt.Sprintf("GC share of server CPU at %s live rows, %%", count(rows)), Must: 2, Moonshot: 0.5}
	for _, c := range all {
		s := c.sample
		t.Rows = append(t.Rows, []string{c.name, figure(s.PerSec), figure(micros(s)), fmt.Sprint(c.cycles), figure(c.pause), figure(100 * c.share), figure(goal.MiB(s.RSS))})
		pause.Add(c.name, c.pause)
		if !strings.HasSuffix(c.name, "forced") {
			share.Add(c.name, 100*c.share)
		}
	}
	t.Rows = append(t.Rows, []string{"all since its start, both stops of a collection", "-", "-", "-", figure(life), "-", "-"})
	r.Tables = append(r.Tables, t)
	r.evaluate(pause)
	r.evaluate(share)
}
