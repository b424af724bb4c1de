package memstore

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
)

func open(t *testing.T, d *Disk) journal.Store {
	t.Helper()
	s, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s journal.Store, firsts ...journal.Index) {
	t.Helper()
	for _, first := range firsts {
		if err := s.WriteBlock(first, []byte{byte(first)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCrashKeepsSynced: what was synced stays, of the rest a prefix, and nothing of it after
// CrashHard.
func TestCrashKeepsSynced(t *testing.T) {
	lengths := make(map[int]bool)
	for seed := range uint64(50) {
		for _, hard := range []bool{false, true} {
			d := New(Options{Seed: seed, Interval: true})
			s := open(t, d)
			write(t, s, 1, 2)
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
			write(t, s, 3, 4, 5)
			if hard {
				d.CrashHard()
			} else {
				d.Crash()
			}
			got := d.Firsts()
			if !slices.Equal(got, []journal.Index{1, 2, 3, 4, 5}[:max(2, len(got))]) || hard && len(got) != 2 {
				t.Fatalf("seed %d: blocks %v after a crash", seed, got)
			}
			lengths[len(got)] = true
		}
	}
	if len(lengths) != 4 {
		t.Errorf("lengths after a crash: %v, want 2 to 5", lengths)
	}
}

// TestKillKeepsAll: the death of a process loses nothing that was written, and its store is of no
// use afterwards.
func TestKillKeepsAll(t *testing.T) {
	d := New(Options{Interval: true})
	s := open(t, d)
	write(t, s, 1, 2)
	d.Kill()
	if err := s.WriteBlock(3, nil); err == nil {
		t.Error("a dead process wrote a block")
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if got := d.Firsts(); len(got) != 2 {
		t.Errorf("blocks %v after a kill", got)
	}
}

// TestSameSeedSameCrash: what is left to chance repeats.
func TestSameSeedSameCrash(t *testing.T) {
	run := func() (out []journal.Index) {
		d := New(Options{Seed: 9, Interval: true, Tear: true})
		for n := range journal.Index(20) {
			s := open(t, d)
			firsts := d.Firsts()
			if len(firsts) > 0 {
				if err := s.CutBlocks(firsts[len(firsts)-1]); err != nil {
					t.Fatal(err)
				}
			}
			write(t, s, n*10+1, n*10+2, n*10+3)
			d.Crash()
			out = append(out, d.Firsts()...)
		}
		return out
	}
	if a, b := run(), run(); !slices.Equal(a, b) {
		t.Errorf("two runs of one seed left %v and %v", a, b)
	}
}

// TestTear: a crash leaves something else than the whole block, in each of its ways.
func TestTear(t *testing.T) {
	short, same := 0, 0
	for seed := range uint64(60) {
		d := New(Options{Seed: seed, Interval: true, Tear: true})
		s := open(t, d)
		whole := []byte("a block of some bytes")
		if err := s.WriteBlock(1, whole); err != nil {
			t.Fatal(err)
		}
		if m, ok := s.(journal.Tearing); !ok || !m.MayTear() {
			t.Fatal("the store does not say that it may tear")
		}
		d.Crash()
		switch {
		case len(d.Firsts()) == 0:
		case len(d.Block(0)) < len(whole):
			short++
		case string(d.Block(0)) != string(whole):
			same++
		}
	}
	if short == 0 || same == 0 {
		t.Errorf("%d blocks cut, %d changed", short, same)
	}
}

func TestFailAt(t *testing.T) {
	d := New(Options{})
	s := open(t, d)
	own := errors.New("own")
	d.FailAt(2, own)
	write(t, s, 1)
	for range 3 {
		if err := s.WriteBlock(2, nil); err != own && err == nil {
			t.Errorf("write: %v", err)
		}
		if err := s.Sync(); err != own {
			t.Errorf("sync: %v", err)
		}
	}
	d.FailAt(1, nil)
	if err := s.Sync(); err != errInjected {
		t.Errorf("sync: %v", err)
	}
	d.FailAt(0, nil)
	if err := s.Sync(); err != nil {
		t.Errorf("sync: %v", err)
	}
}

// TestDelay: in mode always each block waits for the disk, in interval only a sync does.
func TestDelay(t *testing.T) {
	f := func(interval bool, want time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			d := New(Options{Interval: interval})
			s := open(t, d)
			d.Delay(2 * time.Second)
			begin := time.Now()
			write(t, s, 1, 2, 3)
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begin); got != want {
				t.Errorf("interval %v: %s, want %s", interval, got, want)
			}
		})
	}
	f(false, 8*time.Second)
	f(true, 2*time.Second)
}

// TestDropsMayComeBack: what was dropped without a sync is there again after some crashes, and
// without a gap after each.
func TestDropsMayComeBack(t *testing.T) {
	back := 0
	for seed := range uint64(20) {
		d := New(Options{Seed: seed})
		s := open(t, d)
		write(t, s, 1, 2, 3)
		w, err := s.BeginSnapshot(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Commit(nil), s.DropSnapshot(1), s.DropBlocks(3)); err != nil {
			t.Fatal(err)
		}
		d.CrashHard()
		list, err := open(t, d).ListSnapshots()
		got := d.Firsts()
		switch {
		case err == nil && slices.Equal(got, []journal.Index{1, 2, 3}) && len(list) == 1:
			back++
		case err != nil || !slices.Equal(got, []journal.Index{3}) || len(list) != 0:
			t.Fatalf("seed %d: blocks %v, %d generations, %v", seed, got, len(list), err)
		}
	}
	if back == 0 || back == 20 {
		t.Errorf("dropped blocks came back %d times of 20", back)
	}
}
