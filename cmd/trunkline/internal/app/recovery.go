package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/systemd"
	"trunkline/engine/journal"
	"trunkline/engine/store"
	"trunkline/handlers/ops"
)

// The phases of a recovery, as /readyz shows them.
const (
	phaseOpen     = "open"
	phaseSnapshot = "snapshot"
	phaseLog      = "log"
)

// tellEvery is the time between two lines about a recovery that goes on.
const tellEvery = 2 * time.Second

// progress is how far a recovery is. Its methods may be called from any goroutine.
type progress struct {
	mu       sync.Mutex
	phase    string // empty before and after
	done     uint64
	total    uint64
	began    time.Time // of the phase
	latest   time.Time // of the latest report
	replayed uint64
}

func (p *progress) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.began, p.latest = phaseOpen, now, now
}

// opened notes that the files are open: what is reported next began now.
func (p *progress) opened(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = now
}

func (p *progress) report(r store.RecoverProgress, now time.Time) {
	phase := phaseLog
	if r.Snapshot {
		phase = phaseSnapshot
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if phase != p.phase {
		p.phase, p.began = phase, p.latest // the first report of a phase comes when some of it is done
	}
	p.done, p.total, p.latest = r.Done, r.Total, now
	if !r.Snapshot {
		p.replayed = r.Done
	}
}

// end makes view return nil again.
func (p *progress) end() (replayed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = ""
	return p.replayed
}

// view returns what is shown, nil while there is no recovery.
func (p *progress) view(now time.Time) *ops.Recovery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == "" {
		return nil
	}
	v := &ops.Recovery{Phase: p.phase, Done: p.done, Total: p.total}
	if p.total == 0 || p.done == 0 {
		return v
	}
	v.Percent = tenths(float64(p.done) / float64(p.total) * 100)
	// The part that is done took until the latest report, and some of the rest was done since.
	rest := p.latest.Sub(p.began).Seconds() / float64(p.done) * float64(p.total-min(p.done, p.total))
	eta := tenths(max(rest-now.Sub(p.latest).Seconds(), 0))
	v.ETASecs = &eta
	return v
}

func tenths(f float64) float64 { return math.Round(f*10) / 10 }

// recovery returns how far it is, nil while there is none. A node of a cluster goes on to follow
// the log, which is no recovery any more once it has read of an owner.
func (s *storage) recovery() *ops.Recovery {
	if s == nil || s.options.lease.HasRead() {
		return nil
	}
	return s.progress.view(time.Now())
}

// recover opens the storage and reports its progress. When ctx ends, or failed brings an error of
// another part, it stops at once and returns why; what is stored is as it was then.
func (s *storage) recover(ctx context.Context, failed <-chan error) error {
	began := time.Now()
	s.progress.begin(began)
	s.logger.Info("recovering", "dir", s.cfg.Dir, "mode", s.cfg.Mode)
	if s.recoverTo != 0 {
		s.logger.Warn("as asked, every record after this index is given up for good, and every snapshot that holds one or is damaged",
			"dir", s.cfg.Dir, "index", s.recoverTo)
	}
	done := make(chan error, 1)
	go func() { done <- s.open() }()
	extend := s.extender()
	extend()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			replayed := s.progress.end()
			if err == nil {
				s.tellEnd(time.Since(began).Seconds(), replayed)
			}
			return err
		case <-tick.C:
			s.report()
			extend()
		case <-ctx.Done():
			return s.interrupt(done, ctx.Err())
		case err := <-failed:
			return s.interrupt(done, err)
		}
	}
}

// interruptGrace is how long a recovery that is to end may take to notice it. One that waits for a
// disk which does not answer is left behind: it has answered nothing, and ends with the process as
// if that had been killed.
const interruptGrace = 2 * time.Second

// interrupt ends a recovery because of cause; damage that it met meanwhile is not kept back.
func (s *storage) interrupt(done <-chan error, cause error) error {
	s.stopped.Store(true)
	s.options.lease.Interrupt()
	var err error
	select {
	case err = <-done:
	case <-time.After(s.patience):
		s.left.Store(true)
		s.logger.Warn("the store does not answer; stopping without waiting for it", "dir", s.cfg.Dir, "secs", s.patience.Seconds())
	}
	s.progress.end()
	if err == nil || errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) { // the latter by the cluster
		return cause
	}
	return err
}

// extendBy is the time that the supervisor of the process is asked for whenever a recovery has gone
// on; it has to be more than tellEvery.
const extendBy = 30 * time.Second

// extender returns what shows the supervisor how far a recovery is, and asks for time if it has
// gone on since the last call.
func (s *storage) extender() func() {
	seen, began := uint64(0), false
	return func() {
		v := s.recovery()
		if v == nil {
			return
		}
		states := []string{systemd.Status("reading the store: %s, %.1f %%", v.Phase, v.Percent)}
		if !began || v.Done != seen {
			states = append(states, systemd.Extend(extendBy))
		}
		seen, began = v.Done, true
		s.options.notify(states...)
	}
}

func (s *storage) report() {
	v := s.recovery()
	if v == nil {
		return
	}
	args := []any{"phase", v.Phase, "done", v.Done, "total", v.Total, "percent", v.Percent}
	if v.ETASecs != nil {
		args = append(args, "eta_secs", *v.ETASecs)
	}
	s.logger.Info("recovering", args...)
}

func (s *storage) tellEnd(secs float64, replayed uint64) {
	read := s.store.Load().read.Load()
	s.logger.Info("recovered", "dir", s.cfg.Dir, "records", s.log.Load().Appended(), "replayed", replayed, "secs", secs,
		"mb", tenths(float64(read)/1e6), "mb_per_sec", tenths(float64(read)/1e6/max(secs, 1e-3)))
}

// absolute names a directory for a reader in another working directory.
func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// unrecovered is the error of a recovery whose log was open: end is its last index.
type unrecovered struct {
	err error
	end journal.Index
}

// Error implements error.
func (e *unrecovered) Error() string { return e.err.Error() }

// Unwrap returns what was found.
func (e *unrecovered) Unwrap() error { return e.err }

// Hint describes what to do about an error of Run that comes from the store: damage, a directory in
// use, another mode. It is empty for other errors.
func Hint(err error) string {
	var damage *journal.DamageError
	var mismatch *journal.ErrModeMismatch
	var layout *journal.LayoutError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &mismatch):
		return fmt.Sprintf("the directory was made with store.mode=%s and the settings say %s: set store.mode=%s, or name another store.dir",
			mismatch.Made, mismatch.Asked, mismatch.Made)
	case errors.As(err, &layout):
		return layout.Advice()
	case errors.As(err, new(damagedCluster)):
		return "'trunkline cluster status --check' on each node shows whose copy is damaged; see 'A damaged replica' in docs/cluster.md before you move anything away"
	case errors.As(err, &damage):
		return damageHint(err, damage)
	case errors.Is(err, journal.ErrLocked):
		return "another server uses this directory: stop it, or name another store.dir"
	}
	return ""
}

const copyFirst = "; 'trunkline store verify' says what is lost, and a copy made first can be tried again"

func damageHint(err error, d *journal.DamageError) string {
	switch {
	case strings.Contains(d.Where, "generation ") && !beyondLog(err, d):
		end := journal.Index(math.MaxUint64)
		if u := (*unrecovered)(nil); errors.As(err, &u) {
			end = u.end
		}
		return fmt.Sprintf("serve --recover-to-index %d gives up the damaged snapshot and uses the one before, if the log reaches back to it%s", end, copyFirst)
	case d.Index > 1:
		return fmt.Sprintf("serve --recover-to-index %d keeps what is before%s", d.Index-1, copyFirst)
	case d.Index == 1:
		return "nothing is left before the damage: restore a copy, or move the directory away to start empty"
	}
	return "it is not known what is left before the damage, 'trunkline store verify' may tell: restore a copy, or move the directory away to start empty"
}

// beyondLog reports whether a snapshot is refused because the log lost its end. Only then it names
// the index after that end.
func beyondLog(err error, d *journal.DamageError) bool {
	u := (*unrecovered)(nil)
	return d.Index > 0 && !errors.As(err, &u)
}

// errInterrupted ends a recovery that the caller does not wait for any more.
var errInterrupted = errors.New("recovery was interrupted")

// watched is a store whose reading is counted and can be ended. Once it is stopped nothing is
// written either, so that what a claim has to know of the log is known in whole or not used.
type watched struct {
	diskStore
	stopped *atomic.Bool
	read    atomic.Uint64 // bytes of blocks and chunks
}

func (w *watched) err() error {
	if w.stopped.Load() {
		return errInterrupted
	}
	return nil
}

// Blocks implements journal.Blocks.
func (w *watched) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return w.diskStore.Blocks(from, func(first journal.Index, block []byte) error {
		if err := w.err(); err != nil {
			return err
		}
		w.read.Add(uint64(len(block)))
		return f(first, block)
	})
}

// ReadSnapshot implements journal.Snapshots.
func (w *watched) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	return w.diskStore.ReadSnapshot(g, func(chunk []byte) error {
		if err := w.err(); err != nil {
			return err
		}
		w.read.Add(uint64(len(chunk)))
		return f(chunk)
	})
}

// Scrub implements journal.Scrubber.
func (w *watched) Scrub() error {
	if s, ok := w.diskStore.(journal.Scrubber); ok {
		return s.Scrub()
	}
	return nil
}

// WriteBlock implements journal.Blocks.
func (w *watched) WriteBlock(first journal.Index, block []byte) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.diskStore.WriteBlock(first, block)
}

// CutBlocks implements journal.Blocks.
func (w *watched) CutBlocks(from journal.Index) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.diskStore.CutBlocks(from)
}

// DropSnapshot implements journal.Snapshots.
func (w *watched) DropSnapshot(g uint64) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.diskStore.DropSnapshot(g)
}
