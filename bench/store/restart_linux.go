package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// goalRows is the table of G16, goalSeconds what a start may take until its first reply, and
// moonshot far less; a smaller table has as much less time.
const (
	goalRows    = 1_000_000
	goalSeconds = 1.0
	moonshot    = 0.5
)

// RestartPart measures how soon a server is back with a large table, and what its snapshots cost
// those who ask meanwhile.
func RestartPart() part.Part {
	t := &restarting{paced: 10 * time.Second}
	p := common(part.Part{
		Name: "restart", What: "a large table after SIGKILL, from log and snapshot (G16), and latency while snapshots are written",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&t.paced, "paced", t.paced, "restart: time of each method under a paced load while snapshots are written")
		},
		Run: func(r *part.Run) error {
			t.Run, t.dir = r, filepath.Join(r.Rig.Dir, "store")
			return t.run()
		},
	})
	defaults, quick := p.Defaults, p.Quick
	p.Defaults = func(o *part.Options) { defaults(o); o.Rounds, o.Rows = 3, goalRows }
	p.Quick = func(o *part.Options) { quick(o); o.Rounds, o.Rows = 1, goalRows/4 }
	return p
}

// Ways in which the server under restart takes snapshots.
var (
	noSnapshots   = []string{"store.snapshot_bytes=" + strconv.Itoa(math.MaxInt), "store.snapshot_interval_secs=315360000"}
	everySnapshot = []string{"store.snapshot_bytes=" + strconv.Itoa(math.MaxInt), "store.snapshot_interval_secs=1"}
)

// restarting is the server with the large table.
type restarting struct {
	*part.Run
	dir   string
	paced time.Duration
	s     *load.Server
}

// restarted is what starting anew took: medians over some starts on the same files.
type restarted [figures]float64

const (
	answer       = iota // seconds from the start of the process to its first reply
	recovery            // seconds as the server shows: directory opened, snapshot loaded, log replayed
	fromSnapshot        // of it, and the next
	fromLog
	rss // MiB at the first reply, and the next
	peak
	figures
)

// divided fills in the parts of a recovery where the server does not print them: a snapshot takes
// as long as where it is alone.
func (m restarted) divided(alone float64) restarted {
	if m[fromSnapshot]+m[fromLog] == 0 {
		m[fromSnapshot] = min(alone, m[recovery])
		m[fromLog] = m[recovery] - m[fromSnapshot]
	}
	return m
}

// tailShare is the tail behind the snapshot: one record for so many rows.
const tailShare = 4

// run makes the table, restarts from each kind of store, and measures what a snapshot costs those
// who ask meanwhile.
func (t *restarting) run() error {
	if err := t.create(); err != nil {
		return err
	}
	g, alone := restartGoal(t.Rows), 0.0
	table := goal.Grid{Title: "restarts after SIGKILL", Head: []string{"from", "processes", "tail records", "store MiB", "first reply s", "recovery s", "of it snapshot s", "log s", "RSS MiB", "peak MiB"}}
	for _, kind := range []struct {
		from  string
		tail  int
		reach func() error
	}{{"log", t.Rows, func() error { return nil }}, {"snapshot", 0, t.snapshot}, {"snapshot + tail", t.Rows / tailShare, t.tail}} {
		if err := kind.reach(); err != nil {
			return fmt.Errorf("cannot prepare a restart from %s: %w", kind.from, err)
		}
		stored := load.DirectoryBytes(t.dir)
		took, err := t.restarts()
		if err != nil {
			return fmt.Errorf("cannot restart from %s: %w", kind.from, err)
		}
		if kind.tail == 0 {
			alone = took[recovery]
		}
		row := []any{kind.from, t.Rows, kind.tail, goal.MiB(stored)}
		for _, v := range took.divided(alone) {
			row = append(row, v)
		}
		table.Add(row...)
		g.Add(kind.from, took[answer])
	}
	t.Report.Goal(g)
	t.Report.Table(table)
	return t.duringSnapshots()
}

// restartGoal is what is asked of a table of so many rows.
func restartGoal(rows int) goal.Goal {
	share := float64(rows) / goalRows
	return goal.Goal{ID: "G16", What: fmt.Sprintf("seconds from a start to its first reply, %d processes", rows), Must: goalSeconds * share, Moonshot: moonshot * share}
}

// start starts the server on its store, with a log that programs read.
func (t *restarting) start(snapshots []string) (err error) {
	c := load.Trunkline(t.Binary, settings(t.Run, always, append(snapshots, "store.dir="+t.dir)...)...)
	c.Args = append(c.Args, "--log-format", "json")
	t.s, err = t.Start(c)
	return err
}

// create fills the table over some connections.
func (t *restarting) create() error {
	if err := t.start(noSnapshots); err != nil {
		return err
	}
	const creators = 16
	var errs [creators]error
	var wg sync.WaitGroup
	for i := range creators {
		wg.Go(func() { errs[i] = load.CreateRows(t.s.Addr, i*t.Rows/creators, (i+1)*t.Rows/creators) })
	}
	wg.Wait()
	return cmp.Or(errs[:]...)
}

// again kills the server, starts it on the same store and waits until it knows the last process: it
// may listen before it has recovered.
func (t *restarting) again(snapshots []string) error {
	if err := t.s.Kill(); err != nil {
		return err
	}
	if err := t.start(snapshots); err != nil {
		return err
	}
	return t.await("first reply", func() (bool, error) {
		_, err := load.Ask(t.s.Addr, "kernel", getProcess, text("pid", load.PID(t.Rows-1)))
		if refused := (*load.Failure)(nil); errors.As(err, &refused) && refused.Code == "NOT_FOUND" {
			return false, err
		}
		return err == nil, nil
	})
}

// patience bounds the wait for a recovery and for a snapshot.
const patience = 2 * time.Minute

// await asks until the answer is yes or an error.
func (t *restarting) await(what string, ask func() (bool, error)) error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		if time.Since(start) > patience || !t.s.Alive() {
			return fmt.Errorf("no %s within %v; the server said:\n%s", what, patience, t.s.Output())
		}
	}
}

// restarts starts anew some times on the same files.
func (t *restarting) restarts() (out restarted, err error) {
	var seen [figures][]float64
	for range t.Options.Rounds {
		start := time.Now()
		if err := t.again(noSnapshots); err != nil {
			return out, err
		}
		first := time.Since(start).Seconds()
		m, err := t.s.Memory()
		if err != nil {
			return out, err
		}
		var said []entry // that the server listens is seen before what recovery took
		if err := t.await("end of the recovery", func() (bool, error) { said = logged(t.s.Output(), "recovered"); return len(said) > 0, nil }); err != nil {
			return out, err
		}
		took := restarted{first, said[0].Secs, said[0].Snapshot, said[0].Replay, goal.MiB(m.RSS), goal.MiB(m.Peak)}
		for i, v := range took {
			seen[i] = append(seen[i], v)
			out[i] = goal.Median(seen[i])
		}
		counts, err := load.Ask(t.s.Addr, "kernel", "GetProcessCounts")
		if err == nil && fmt.Sprint(counts["total"]) != strconv.Itoa(t.Rows) {
			err = fmt.Errorf("%v processes, want %d", counts["total"], t.Rows)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// snapshot has the server write one. What was changed before the server looks first calls for none.
func (t *restarting) snapshot() error {
	if err := t.again(everySnapshot); err != nil {
		return err
	}
	return t.await("snapshot", func() (bool, error) {
		err := t.touch()
		return len(logged(t.s.Output(), "snapshot written")) > 0, err
	})
}

// touch makes one change, so that there is something to take a snapshot of.
func (t *restarting) touch() error {
	_, err := load.Ask(t.s.Addr, "kernel", recordUsage, text("pid", load.PID(0)), load.Field{Key: "llm_calls", Value: 1})
	return err
}

// tail makes changes behind the snapshot.
func (t *restarting) tail() error {
	tapes := make([]*load.Tape, few.conns)
	for i := range tapes {
		tapes[i] = new(load.Tape)
	}
	for i := range t.Rows / tailShare {
		tapes[i%len(tapes)].Add(0, load.RowRequest(recordUsage, i*tailShare))
	}
	return load.SendOnce(t.s.Addr, load.Kernel, tapes, fewDeep.depth)
}

// entry is a line of the server's log, with what the lines here have.
type entry struct {
	Time     time.Time
	Msg      string
	Secs     float64
	Snapshot float64 `json:"snapshot_secs"` // the parts of a recovery, where the server shows them
	Replay   float64 `json:"replay_secs"`
}

// from is when that which took so long began.
func (e entry) from() time.Time { return e.Time.Add(-time.Duration(e.Secs * float64(time.Second))) }

// logged returns the lines of a log that have the message.
func logged(output, message string) (list []entry) {
	for line := range strings.Lines(output) {
		var e entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Msg == message {
			list = append(list, e)
		}
	}
	return list
}
