package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// restart is what starting anew after SIGKILL took: medians over some starts on the same files.
type restart struct {
	From     string  `json:"from"` // log, snapshot, snapshot + tail
	Rows     int     `json:"rows"`
	Tail     int     `json:"tail_records"` // of the log, behind the snapshot
	Store    int64   `json:"store_bytes"`
	Recovery float64 `json:"recovery_seconds"`     // as the server shows: directory opened, snapshot loaded, log replayed
	Snapshot float64 `json:"snapshot_seconds"`     // its part for the snapshot
	Replay   float64 `json:"replay_seconds"`       // its part for the log
	Answer   float64 `json:"first_answer_seconds"` // from the start of the process to its first reply
	RSS      int64   `json:"rss_bytes"`            // at the first reply
	Peak     int64   `json:"peak_rss_bytes"`
}

// tailShare is the tail behind the snapshot: one record for so many rows.
const tailShare = 4

// Ways in which the server under restart takes snapshots.
var (
	noSnapshots   = []string{"store.snapshot_bytes=" + strconv.Itoa(math.MaxInt), "store.snapshot_interval_secs=315360000"}
	everySnapshot = []string{"store.snapshot_bytes=" + strconv.Itoa(math.MaxInt), "store.snapshot_interval_secs=1"}
)

// restarting is the server with the large table.
type restarting struct {
	*bench
	dir  string
	rows int
	s    *load.Server
}

// restart makes the table, restarts from each kind of store, and measures what a snapshot costs
// those who ask meanwhile.
func (b *bench) restart(r *report) error {
	t := &restarting{bench: b, dir: b.newStore(), rows: b.o.restartRows}
	defer os.RemoveAll(t.dir)
	start := time.Now()
	if err := t.create(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d processes created in %.1f s\n", t.rows, time.Since(start).Seconds())
	for _, kind := range []struct {
		from  string
		tail  int
		reach func() error
	}{{"log", t.rows, func() error { return nil }}, {"snapshot", 0, t.snapshot}, {"snapshot + tail", t.rows / tailShare, t.tail}} {
		if err := kind.reach(); err != nil {
			return fmt.Errorf("cannot prepare a restart from %s: %w", kind.from, err)
		}
		m, err := t.measure(kind.from, kind.tail)
		if err != nil {
			return fmt.Errorf("cannot restart from %s: %w", kind.from, err)
		}
		r.Restarts = append(r.Restarts, m.divided(r.Restarts))
		fmt.Fprintf(os.Stderr, "restarts from %s done\n", kind.from)
	}
	return t.duringSnapshots(r)
}

// create fills the table over some connections.
func (t *restarting) create() (err error) {
	if t.s, err = t.trunkline(always, t.dir, noSnapshots...); err != nil {
		return err
	}
	const creators = 16
	errs := make([]error, creators)
	var wg sync.WaitGroup
	for i := range creators {
		wg.Go(func() { errs[i] = load.CreateRows(t.s.Addr, i*t.rows/creators, (i+1)*t.rows/creators) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// again kills the server, starts it on the same store and waits for its first reply.
func (t *restarting) again(settings []string) (err error) {
	if err := t.s.Kill(); err != nil {
		return err
	}
	if t.s, err = t.trunkline(always, t.dir, settings...); err != nil {
		return err
	}
	return t.answers()
}

// answers asks for the last process until the server reports it: it may listen before it has
// recovered.
func (t *restarting) answers() error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		err := t.look(t.rows - 1)
		var refused *load.Failure
		if err == nil || errors.As(err, &refused) && refused.Code == "NOT_FOUND" {
			return err
		}
		if time.Since(start) > recoveryTimeout || !t.s.Alive() {
			return fmt.Errorf("%w; the server said:\n%s", err, t.s.Output())
		}
	}
}

// measure restarts some times.
func (t *restarting) measure(from string, tail int) (restart, error) {
	out := restart{From: from, Rows: t.rows, Tail: tail}
	var seconds [4][]float64
	var rss, peak []float64
	for range t.o.restarts {
		out.Store = load.DirectoryBytes(t.dir)
		start := time.Now()
		if err := t.again(noSnapshots); err != nil {
			return out, err
		}
		answer := time.Since(start).Seconds()
		m, err := t.s.Memory()
		if err != nil {
			return out, err
		}
		said, err := t.recovered()
		if err != nil {
			return out, err
		}
		for i, v := range []float64{logged(said, "recovered", "secs"), logged(said, "recovered", "snapshot_secs"), logged(said, "recovered", "replay_secs"), answer} {
			seconds[i] = append(seconds[i], v)
		}
		rss, peak = append(rss, float64(m.RSS)), append(peak, float64(m.Peak))
		if err := t.complete(); err != nil {
			return out, err
		}
	}
	out.Recovery, out.Snapshot, out.Replay, out.Answer = goal.Median(seconds[0]), goal.Median(seconds[1]), goal.Median(seconds[2]), goal.Median(seconds[3])
	out.RSS, out.Peak = int64(goal.Median(rss)), int64(goal.Median(peak))
	return out, nil
}

// recovered returns what the server has reported once it has reported how long recovery took. That
// it listens is printed, and seen, before.
func (t *restarting) recovered() (said string, err error) {
	const patience = 5 * time.Second
	for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Millisecond) {
		if said = t.s.Output(); logged(said, "recovered", "secs") > 0 {
			return said, nil
		}
	}
	return "", fmt.Errorf("cannot find how long recovery took in the server's output:\n%s", said)
}

// divided fills in the parts of a recovery where the server does not print them: of one with both,
// the snapshot is taken to have taken as long as where it was alone.
func (m restart) divided(before []restart) restart {
	if m.Snapshot+m.Replay > 0 {
		return m
	}
	switch {
	case m.Tail == m.Rows:
		m.Replay = m.Recovery
	case m.Tail == 0:
		m.Snapshot = m.Recovery
	default:
		for _, b := range before {
			if b.Tail == 0 {
				m.Snapshot = min(b.Recovery, m.Recovery)
			}
		}
		m.Replay = m.Recovery - m.Snapshot
	}
	return m
}

// look asks for one process.
func (t *restarting) look(row int) error {
	if _, err := load.Ask(t.s.Addr, "kernel", getProcess, text("pid", load.PID(row))); err != nil {
		return fmt.Errorf("process %d after a restart: %w", row, err)
	}
	return nil
}

// complete reports a process that is missing.
func (t *restarting) complete() error {
	counts, err := load.Ask(t.s.Addr, "kernel", "GetProcessCounts")
	if err == nil && fmt.Sprint(counts["total"]) != strconv.Itoa(t.rows) {
		err = fmt.Errorf("%v processes after a restart, want %d", counts["total"], t.rows)
	}
	return err
}

// touch makes one change, so that there is something to take a snapshot of.
func (t *restarting) touch() error {
	_, err := load.Ask(t.s.Addr, "kernel", recordUsage, text("pid", load.PID(0)), load.Field{Key: "llm_calls", Value: 1})
	return err
}

// Bounds of the wait for a snapshot and for a recovery.
const (
	snapshotTimeout = 2 * time.Minute
	recoveryTimeout = 2 * time.Minute
)

// snapshot has the server write one.
func (t *restarting) snapshot() error {
	if err := t.again(everySnapshot); err != nil {
		return err
	}
	w := t.watch() // which keeps changing something: what was changed before the server looks first calls for no snapshot
	var late error
	for start := time.Now(); late == nil && !strings.Contains(t.s.Output(), "snapshot written"); time.Sleep(watchEvery) {
		if time.Since(start) > snapshotTimeout || !t.s.Alive() {
			late = fmt.Errorf("no snapshot within %v; the server said:\n%s", snapshotTimeout, t.s.Output())
		}
	}
	_, err := w.end()
	return cmp.Or(late, err)
}

// tail makes changes behind the snapshot.
func (t *restarting) tail() error {
	const conns = 64
	tapes := make([]*load.Tape, conns)
	for i := range tapes {
		tapes[i] = new(load.Tape)
	}
	for i := range t.rows / tailShare {
		tapes[i%conns].Add(0, load.RowRequest(recordUsage, i*tailShare))
	}
	return load.SendOnce(t.s.Addr, load.Kernel, tapes, deep)
}

// logged returns the number behind key= in the last line of a server's text log that has the
// message, 0 if there is none.
func logged(output, message, key string) float64 {
	pattern := regexp.MustCompile(`\b` + regexp.QuoteMeta(message) + `\b.*?\s` + regexp.QuoteMeta(key) + `=([0-9.eE+-]+)`)
	all := pattern.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return 0
	}
	v, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	if err != nil {
		return 0
	}
	return v
}
