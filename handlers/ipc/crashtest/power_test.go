package crashtest

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// life is one server under load, the cuts of its power, and what is known of it.
type life struct {
	mode     journal.Mode
	tape     tape
	clock    *clock
	reported *history
	cuts     []cut
	digest   uint64 // at the end
	end      journal.Index
	known    journal.Index // the last index whose record clients may know of, 0: any
}

// live has clients work on a server whose power is cut now and then.
func live(t testing.TB, mode journal.Mode, seed uint64, cuts int) *life {
	t.Helper()
	l := &life{mode: mode, clock: newClock()}
	c := newCutter(mode, seed, 12, cuts)
	o := l.options()
	o.wrap, o.store.SyncEvery = l.tape.over, 3e6
	s := mustBoot(t, c.disk(), "d", mode, o)
	c.log.Store(s.log)
	l.reported = crowd(t, s, l.clock, 6+watchers, 14, seed)
	s.settle(t)
	l.digest, l.end = s.svc.Runtime().Store.Digest(), s.log.Appended()
	c.cutNow("at the end", 100)
	if mode == journal.Interval {
		before := c.syncs.Load()
		kit.Until(t, "a sync of the log", func() bool { return c.syncs.Load() > before || c.synced.Load() >= l.end })
	}
	c.cutNow("after the end", 0)
	mustStop(t, s)
	c.cutNow("after Close", 0)
	l.cuts = c.cuts
	return l
}

// tally is what cuts met.
type tally struct {
	lost      int // records that were handed to the disk
	snapshots int // cuts that left one
}

func (l *life) options() options {
	return options{state: runtime.Config{Now: l.clock.now}}
}

// outcome opens what a cut left and compares it with everything that is known.
func (l *life) outcome(t testing.TB, c cut, seen *tally) error {
	t.Helper()
	store, err := embedded.Open(embedded.Config{Dir: "d", Mode: l.mode, FS: c.fs, FreeBytes: plenty, SyncEvery: never})
	if err != nil {
		return err
	}
	s := &server{dead: make(chan struct{})}
	first, err := l.tape.holds(store)
	if err != nil {
		_ = store.Close()
		return err
	}
	if err := s.serve(store, l.mode, l.options(), nil); err != nil {
		return err
	}
	defer mustStop(t, s)
	last := s.log.Appended() - 1 // without the claim of this life
	if last < c.must {
		return fmt.Errorf("the journal ends at %d, but %d was safe", last, c.must)
	}
	seen.lost += int(max(c.durable, last) - last)
	if list, err := store.ListSnapshots(); err == nil && len(list) > 0 {
		seen.snapshots++
	}
	got := s.svc.Runtime().Store.Digest()
	if want := digestOf(t, l.tape.upTo(first), l.mode, l.options().state); got != want {
		return fmt.Errorf("recovered up to %d: digest %x, a fresh replay gives %x", last, got, want)
	}
	if l.known == 0 && last == l.end && got != l.digest {
		return fmt.Errorf("recovered completely: digest %x, was %x", got, l.digest)
	}
	if l.known > 0 {
		last = min(last, l.known)
	}
	return l.reported.verify(t, s, l.clock, last)
}

// TestPowerLoss cuts the power of a busy server at random write operations. What is there
// afterwards is the beginning of the journal, and its state is that of a fresh replay. Always loses
// nothing that was acknowledged, Interval nothing before the last completed sync, neither anything
// when only the process dies. Nothing that a reader was shown is gone, and nothing is applied
// twice.
func TestPowerLoss(t *testing.T) {
	want := rounds.Pick(25, rounds.Of(25, 64))
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			cuts, runs := 0, 0
			var seen tally
			proves := func() bool { return mode != journal.Interval || seen.lost > 0 && seen.snapshots > 0 }
			for seed := uint64(1); cuts < want || !proves() && cuts < 8*want; seed++ { // on a slow machine few lives may lose nothing
				l := live(t, mode, seed, min(24, max(want-cuts, 8)))
				for _, c := range l.cuts {
					if err := l.outcome(t, c, &seen); err != nil {
						t.Fatalf("seed %d, cut %s: %v", seed, c.what, err)
					}
				}
				cuts, runs = cuts+len(l.cuts), runs+1
			}
			t.Logf("%d cuts in %d lives: %+v", cuts, runs, seen)
			if !proves() {
				t.Error("no cut lost anything, or none met a snapshot: they prove little")
			}
		})
	}
}

// TestPowerLossInRecovery cuts the power a second time, while a server comes up after the first.
func TestPowerLossInRecovery(t *testing.T) {
	const cuts = 2
	lives := rounds.Of(1, 1)
	for _, mode := range modes() {
		t.Run(mode.String(), func(t *testing.T) {
			again := 0
			for seed := range uint64(lives) {
				l := live(t, mode, 1000+seed, cuts)
				for i, first := range l.cuts {
					second := l.recoverAndCut(t, first, seed*100+uint64(i))
					for again += len(second.cuts); len(second.cuts) > 0; second.cuts = second.cuts[1:] {
						if err := second.outcome(t, second.cuts[0], new(tally)); err != nil {
							t.Fatalf("seed %d, cut %s, then %s: %v", 1000+seed, first.what, second.cuts[0].what, err)
						}
					}
				}
			}
			t.Logf("%d cuts in recoveries", again)
		})
	}
}

// recoverAndCut cuts the power while a server recovers, at every other operation, and returns what
// is known then: all that was found must be found again.
func (l *life) recoverAndCut(t testing.TB, from cut, seed uint64) *life {
	t.Helper()
	c := newCutter(l.mode, seed, 2, 24)
	c.mem = memdisk.Of(from.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: c.rng}))
	c.log.Store(new(journal.Log)) // of which nothing has to be there
	again := &life{mode: l.mode, clock: l.clock, reported: l.reported, tape: tape{blocks: l.tape.blocks}}
	o := l.options()
	o.wrap = again.tape.over
	s, err := boot(errorfs.Wrap(c.mem, c), "d", l.mode, o)
	if err != nil {
		t.Fatalf("cut %s: %v", from.what, err)
	}
	c.mu.Lock()
	c.most = 0
	c.mu.Unlock()
	again.known = s.log.Appended() - 1
	mustStop(t, s)
	for again.cuts = c.cuts; len(c.cuts) > 0; c.cuts = c.cuts[1:] {
		c.cuts[0].must = again.known
	}
	return again
}
