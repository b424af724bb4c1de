package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	goalRows  = 1_000_000 // of G16; a smaller table has as much less time
	tailShare = 4
	patience  = 2 * time.Minute
	// touches is how many changes there are in a second beside the load, as a table that only is
	// read needs no snapshot.
	touches = 5
	// pacedShare of what the server did with one request in flight on each connection, which is how
	// a paced load comes, is what it asks for: enough room that latency means something.
	pacedShare   = 0.3
	pacedDepth   = 64
	pacedTries   = 4
	pacedWindows = 10
)

var (
	noSnapshots   = []string{"store.snapshot_bytes=" + strconv.Itoa(math.MaxInt), "store.snapshot_interval_secs=315360000"}
	everySnapshot = []string{"store.snapshot_bytes=" + strconv.Itoa(math.MaxInt), "store.snapshot_interval_secs=1"}
)

// RestartPart measures how soon a server is back with a large table, and what its snapshots cost
// those who ask meanwhile.
func RestartPart() part.Part {
	p := common(part.Part{
		Name: "restart", What: "a large table after SIGKILL, from log and snapshot (G16), and latency while snapshots are written",
		Run: func(r *part.Run) error {
			t := &restarting{Run: r, dir: filepath.Join(r.Rig.Dir, "store"), paced: pacedWindows * r.Window}
			return inOrder(func() error { return t.start(noSnapshots) },
				func() error { return load.CreateRows(t.s.Addr, 0, t.Rows) }, t.restarts, t.duringSnapshots)
		},
	})
	defaults, quick := p.Defaults, p.Quick
	p.Defaults = func(o *part.Options) { defaults(o); o.Rounds, o.Rows = 3, goalRows }
	p.Quick = func(o *part.Options) { quick(o); o.Rounds, o.Rows = 1, goalRows/4 }
	return p
}

type restarting struct {
	*part.Run
	dir   string
	paced time.Duration // of each method
	s     *load.Server
}

// start starts the server on its store, with a log that programs read.
func (t *restarting) start(snapshots []string) (err error) {
	c := load.Trunkline(t.Binary, settings(t.Run, always, append(snapshots, "store.dir="+t.dir)...)...)
	c.Args = append(c.Args, "--log-format", "json")
	t.s, err = t.Start(c)
	return err
}

// again kills the server, starts it on the same store and waits until it knows the last process: it
// may listen before it has recovered.
func (t *restarting) again(snapshots []string) error {
	if err := inOrder(t.s.Kill, func() error { return t.start(snapshots) }); err != nil {
		return err
	}
	return t.await("first reply", func() (bool, error) {
		_, err := load.Ask(t.s.Addr, "kernel", getProcess, "pid", load.PID(t.Rows-1))
		if refused := (*load.Failure)(nil); errors.As(err, &refused) && refused.Code == "NOT_FOUND" {
			return false, err
		}
		return err == nil, nil
	})
}

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

func (t *restarting) logged(message string) (lines []entry, err error) {
	err = t.await(message, func() (bool, error) {
		lines = entries(t.s.Output(), message)
		return len(lines) > 0, nil
	})
	return lines, err
}

// restarts starts again from each kind of store, some times on the same files. Of a recovery with
// both, the snapshot is taken to have taken as long as where it was alone.
func (t *restarting) restarts() error {
	tail := func() error {
		return load.SendOnce(t.s.Addr, load.Kernel, tapesOf(recordUsage, span{0, t.Rows / tailShare}, few.conns, nil), fewDeep.depth)
	}
	g, alone := restartGoal(t.Rows), 0.0
	table := goal.Grid{Title: "restarts after SIGKILL", Head: []string{"from", "processes", "tail records", "store MiB", "first reply s", "recovery s", "of it snapshot s", "log s", "RSS MiB", "peak MiB"}}
	for _, kind := range []struct {
		from  string
		tail  int
		reach func() error
	}{{"log", t.Rows, func() error { return nil }}, {"snapshot", 0, t.snapshot}, {"snapshot + tail", t.Rows / tailShare, tail}} {
		if err := kind.reach(); err != nil {
			return fmt.Errorf("cannot prepare a restart from %s: %w", kind.from, err)
		}
		stored := goal.MiB(load.DirectoryBytes(t.dir))
		var answers, recoveries, rss, peak []float64
		for range t.Options.Rounds {
			answer, recovery, m, err := t.once()
			if err != nil {
				return fmt.Errorf("cannot restart from %s: %w", kind.from, err)
			}
			answers, recoveries, rss, peak = append(answers, answer), append(recoveries, recovery), append(rss, goal.MiB(m.RSS)), append(peak, goal.MiB(m.Peak))
		}
		recovery := goal.Median(recoveries)
		if kind.tail == 0 {
			alone = recovery
		}
		snapshot := min(alone, recovery)
		table.Add(kind.from, t.Rows, kind.tail, stored, goal.Median(answers), recovery, snapshot, recovery-snapshot, goal.Median(rss), goal.Median(peak))
		g.Add(kind.from, goal.Median(answers))
	}
	t.Report.Goal(g)
	t.Report.Table(table)
	return nil
}

func restartGoal(rows int) goal.Goal {
	share := float64(rows) / goalRows
	return goal.Goal{ID: "G16", What: fmt.Sprintf("seconds from a start to its first reply, %d processes", rows), Must: share, Moonshot: share / 2}
}

// once starts again and looks whether all is there. It returns the seconds until the first reply,
// those that recovery took as the server shows them, and the memory at the first reply.
func (t *restarting) once() (answer, recovery float64, m load.Memory, err error) {
	start := time.Now()
	if err := t.again(noSnapshots); err != nil {
		return 0, 0, m, err
	}
	answer = time.Since(start).Seconds()
	m, memoryErr := t.s.Memory()
	said, logErr := t.logged("recovered")
	counts, err := load.Ask(t.s.Addr, "kernel", "GetProcessCounts")
	if err = errors.Join(memoryErr, logErr, err); err != nil {
		return 0, 0, m, err
	}
	if fmt.Sprint(counts["total"]) != strconv.Itoa(t.Rows) {
		return 0, 0, m, fmt.Errorf("%v processes, want %d", counts["total"], t.Rows)
	}
	return answer, said[0].Secs, m, nil
}

func (t *restarting) touch() (*load.Session, error) {
	return load.Start(load.Config{Addr: t.s.Addr, Tapes: tapesOf(recordUsage, span{0, 1}, 1, nil), Depth: 1, PerSec: touches})
}

func (t *restarting) snapshot() error {
	if err := t.again(everySnapshot); err != nil {
		return err
	}
	touching, err := t.touch() // what was changed before the server looks first calls for no snapshot
	if err != nil {
		return err
	}
	_, err = t.logged("snapshot written")
	_, stopErr := touching.Stop()
	return errors.Join(err, stopErr)
}

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
		latency, took, err := t.underLoad(tapes[m], rates[m])
		if err != nil {
			return fmt.Errorf("cannot measure %s during snapshots: %w", m, err)
		}
		for i, h := range latency {
			table.Add(m, rates[m], len(took), goal.Median(took), []string{"no", "yes"}[i], h.Total(),
				goal.Micros(h.Quantile(0.5)), goal.Micros(h.Quantile(0.99)), goal.Micros(h.Quantile(0.999)))
		}
		fmt.Fprintf(os.Stderr, "%s during snapshots done\n", m)
	}
	t.Report.Table(table)
	return nil
}

// underLoad runs the load until it met snapshots and time without them, a few times at most: on a
// slow disk a snapshot takes long. It returns latencies beside and during snapshots, and the
// seconds that these took.
func (t *restarting) underLoad(tapes []*load.Tape, rate float64) (latency [2]load.Histogram, took []float64, err error) {
	for try := 0; try < pacedTries && (latency[0].Total() == 0 || latency[1].Total() == 0); try++ {
		touching, err := t.touch()
		if err != nil {
			return latency, nil, err
		}
		var replies []reply
		start := time.Now()
		_, err = load.RunToEnd(load.Config{Addr: t.s.Addr, Tapes: tapes, Depth: pacedDepth, PerSec: rate, For: t.paced,
			Each: func(due time.Time, latency time.Duration) { replies = append(replies, reply{due, latency}) }})
		_, stopErr := touching.Stop()
		if err = errors.Join(err, stopErr); err != nil {
			return latency, nil, err
		}
		took = append(took, split(start, replies, entries(t.s.Output(), "snapshot written"), &latency)...)
	}
	return latency, took, nil
}

// reply is the due time and the latency of one reply.
type reply struct {
	due     time.Time
	latency time.Duration
}

// split adds each latency to the histogram outside or during snapshots, by due time, and returns
// how long the snapshots of the run took, in seconds. Replies due after the last one are dropped:
// the next one may have started.
func split(start time.Time, replies []reply, snapshots []entry, latency *[2]load.Histogram) (took []float64) {
	for _, r := range replies {
		if i := slices.IndexFunc(snapshots, func(s entry) bool { return r.due.Before(s.Time) }); i >= 0 {
			during := 0
			if from := snapshots[i].Time.Add(-time.Duration(snapshots[i].Secs * float64(time.Second))); !r.due.Before(from) {
				during = 1
			}
			latency[during].Add(int64(r.latency), 1)
		}
	}
	for _, s := range snapshots {
		if s.Time.After(start) {
			took = append(took, s.Secs)
		}
	}
	return took
}

type entry struct {
	Time time.Time
	Msg  string
	Secs float64
}

func entries(output, message string) (list []entry) {
	for line := range strings.Lines(output) {
		var e entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Msg == message {
			list = append(list, e)
		}
	}
	return list
}
