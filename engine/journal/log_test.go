package journal_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start opens the journal of a disk and replays it, counting records.
func start(t *testing.T, d *memstore.Disk, cfg journal.Config) (l *journal.Log, replayed int) {
	t.Helper()
	return startAfter(t, d, cfg, 0)
}

func startAfter(t *testing.T, d *memstore.Disk, cfg journal.Config, after journal.Index) (l *journal.Log, replayed int) {
	t.Helper()
	s, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	if l, err = journal.Open(s, cfg); err != nil {
		t.Fatal(err)
	}
	if err := l.Replay(after, func(journal.Index, []byte) error { replayed++; return nil }); err != nil {
		t.Fatal(err)
	}
	return l, replayed
}

func TestConfigLimits(t *testing.T) {
	f := func(ok bool, set func(c *journal.Config)) {
		t.Helper()
		s, _ := memstore.New(memstore.Options{}).Open()
		var cfg journal.Config
		set(&cfg)
		l, err := journal.Open(s, cfg)
		if (err == nil) != ok {
			t.Errorf("%+v: %v", cfg, err)
		}
		if l != nil {
			l.Close()
		}
	}
	f(true, func(c *journal.Config) {})
	f(true, func(c *journal.Config) { c.MaxBlockBytes = 512 })
	f(false, func(c *journal.Config) { c.MaxBlockBytes = 511 })
	f(true, func(c *journal.Config) { c.MaxBlockBytes = journal.MaxStoredBlock })
	f(false, func(c *journal.Config) { c.MaxBlockBytes = journal.MaxStoredBlock + 1 })
	f(true, func(c *journal.Config) { c.MaxQueueBytes = 512 })
	f(false, func(c *journal.Config) { c.MaxQueueBytes = 511 })
	f(true, func(c *journal.Config) { c.MaxQueueRecords = 1 })
	f(false, func(c *journal.Config) { c.MaxQueueRecords = -1 })
	f(true, func(c *journal.Config) { c.Mode = journal.Interval })
	f(false, func(c *journal.Config) { c.Mode = journal.Memory })
}

func TestModes(t *testing.T) {
	for _, m := range []journal.Mode{journal.Always, journal.Interval, journal.Memory} {
		if got, err := journal.ParseMode(m.String()); got != m || err != nil {
			t.Errorf("mode %s is parsed as %s: %v", m, got, err)
		}
	}
	if _, err := journal.ParseMode("sometimes"); err == nil || !strings.Contains(err.Error(), "sometimes") {
		t.Errorf("an unknown mode: %v", err)
	}
	if s := journal.Mode(9).String(); s != "mode(9)" {
		t.Errorf("mode 9 is %s", s)
	}
}

// wantFailed wants the journal to stop with an error that gives the reason, and nothing of it to
// survive.
func wantFailed(t *testing.T, l *journal.Log, told <-chan error, why string) {
	t.Helper()
	if err := <-told; !errors.Is(err, journal.ErrFailed) || !strings.Contains(err.Error(), why) || l.Err() != err {
		t.Errorf("stopped with %v (Err: %v), want %q", err, l.Err(), why)
	}
	if err := l.Close(); !errors.Is(err, journal.ErrFailed) {
		t.Errorf("close: %v", err)
	}
}

// TestCallersFaults: what Append cannot take stops the journal, at the limit and one beyond it.
func TestCallersFaults(t *testing.T) {
	told := make(chan error, 1)
	cfg := journal.Config{OnFailure: func(err error) { told <- err }}
	d := memstore.New(memstore.Options{})
	l, _ := start(t, d, cfg)
	l.Append(make([]byte, journal.MaxRecordBytes))
	if err := l.Barrier(context.Background()); err != nil {
		t.Fatalf("a record of the longest length: %v", err)
	}
	l.Append(make([]byte, journal.MaxRecordBytes+1))
	wantFailed(t, l, told, "at most")

	s, _ := d.Open()
	l, err := journal.Open(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WriteSnapshot(0, nil); err != journal.ErrNotReplayed {
		t.Errorf("snapshot before replay: %v", err)
	}
	l.Append([]byte("too early"))
	wantFailed(t, l, told, journal.ErrNotReplayed.Error())
	if l, n := start(t, d, cfg); n != 1 || l.Close() != nil {
		t.Errorf("%d records, want 1", n)
	}
}

// TestQueueIsBounded: a caller that never asks Overloaded is stopped at twice the limit of bytes.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		d := memstore.New(memstore.Options{})
		l, _ := start(t, d, journal.Config{MaxQueueBytes: 1000, OnFailure: func(err error) { told <- err }})
		d.Delay(time.Hour)
		rec := make([]byte, 99)
		for n := range int64(20) {
			if l.Overloaded() != (n >= 10) {
				t.Fatalf("overloaded is %v with %d bytes", l.Overloaded(), n*100)
			}
			l.Append(rec)
		}
		synctest.Wait()
		if l.Err() != nil || l.Stats().QueueBytes != 2000 {
			t.Fatalf("at twice the limit: %v, %d bytes", l.Err(), l.Stats().QueueBytes)
		}
		l.Append(nil)
		wantFailed(t, l, told, "twice the limit")
		if s := l.Stats(); s.QueueBytes != 0 || s.QueueRecords != 0 {
			t.Errorf("%d bytes wait after the end", s.QueueBytes)
		}
	})
}

// TestStall: a disk that takes two seconds for a sync delays acknowledgements by as much and blocks
// no Append; what was appended meanwhile shares the next sync.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memstore.New(memstore.Options{})
		var acked []time.Duration
		var written [][2]time.Duration
		begin := time.Now()
		l, _ := start(t, d, journal.Config{
			MaxQueueRecords: 1000,
			OnDurable:       func(journal.Index) { acked = append(acked, time.Since(begin)) },
			OnWritten:       func(waited, took time.Duration) { written = append(written, [2]time.Duration{waited, took}) },
		})
		d.Delay(2 * time.Second)
		l.Append([]byte("first"))
		synctest.Wait()
		for range 1000 {
			l.Append([]byte("later"))
		}
		if time.Since(begin) != 0 {
			t.Fatalf("appends took %s", time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := l.Barrier(ctx); err != context.DeadlineExceeded || l.Durable() != 2 {
			t.Fatalf("barrier with a deadline: %v, durable %d", err, l.Durable())
		}
		if !l.Overloaded() {
			t.Fatal("not overloaded with 1000 records")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.Overloaded() {
			t.Fatal("overloaded with nothing in wait")
		}
		if err := l.Close(); err != nil || l.Durable() != 1002 {
			t.Fatalf("close: %v, durable %d", err, l.Durable())
		}
		if len(acked) != 2 || acked[0] != 2*time.Second || acked[1] != 4*time.Second {
			t.Fatalf("acknowledged after %v", acked)
		}
		want := [][2]time.Duration{{0, 2 * time.Second}, {2 * time.Second, 2 * time.Second}}
		if !slices.Equal(written, want) {
			t.Fatalf("groups waited and took %v", written)
		}
	})
}

// TestLogTime: the time of blocks follows the wall clock forward and never back, over restarts too.
func TestLogTime(t *testing.T) {
	wall := time.Unix(1000, 0)
	cfg := journal.Config{Now: func() time.Time { return wall }}
	d := memstore.New(memstore.Options{})
	l, _ := start(t, d, cfg)
	at := func(sec, want int64) {
		t.Helper()
		wall = time.Unix(sec, 0)
		l.Append(nil)
		if err := l.Barrier(context.Background()); err != nil || l.LogTime() != want*int64(time.Second) {
			t.Fatalf("log time %d at %d: %v", l.LogTime(), sec, err)
		}
	}
	at(1001, 1001)
	at(500, 1001)
	at(1001, 1001)
	at(1002, 1002)
	l.Close()
	wall = time.Unix(7, 0)
	l, _ = start(t, d, cfg)
	at(8, 1002)
	at(1003, 1003)
	l.Close()
}

// TestReplayEnds: an error of the callback ends the replay and nothing is claimed; too late an
// index is refused.
func TestReplayEnds(t *testing.T) {
	d := memstore.New(memstore.Options{})
	l, _ := start(t, d, journal.Config{})
	l.Enqueue([]byte("a")) // so that the two share a block
	l.Append([]byte("b"))
	l.Close()
	s, _ := d.Open()
	l, err := journal.Open(s, journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := l.Replay(0, func(journal.Index, []byte) error { return stop }); err != stop {
		t.Errorf("an error of the callback: %v", err)
	}
	if err := l.Replay(4, nil); err == nil {
		t.Errorf("a replay after the end was accepted")
	}
	if l.Epoch() != 0 || len(d.Firsts()) != 2 {
		t.Errorf("epoch %d, blocks at %v before replay", l.Epoch(), d.Firsts())
	}
	if err := l.Replay(3, func(i journal.Index, _ []byte) error { t.Errorf("record %d", i); return nil }); err != nil || l.Epoch() != 2 {
		t.Errorf("replay from the end: %v, epoch %d", err, l.Epoch())
	}
	if err, again := l.Close(), l.Close(); err != nil || again != nil {
		t.Errorf("close: %v, %v", err, again)
	}
	if err := l.Replay(0, nil); err != journal.ErrClosed {
		t.Errorf("replay after close: %v", err)
	}
	if _, err := l.LoadSnapshot(nil); err != journal.ErrClosed {
		t.Errorf("load after close: %v", err)
	}
	if err := l.WriteSnapshot(0, nil); err != journal.ErrClosed {
		t.Errorf("snapshot after close: %v", err)
	}
}

// TestCloseEndsWaits: a wait for what never comes ends with an error.
func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memstore.New(memstore.Options{})
		l, _ := start(t, d, journal.Config{})
		d.Delay(time.Second)
		l.Append([]byte("kept"))
		snapped := make(chan error, 1)
		go func() {
			snapped <- l.WriteSnapshot(2, func(w io.Writer) error { return nil })
		}()
		synctest.Wait()
		if err := l.Close(); err != nil || <-snapped != nil || l.Durable() != 2 {
			t.Errorf("close: %v, durable %d", err, l.Durable())
		}
		l.Append([]byte("late"))
		if err := l.Barrier(context.Background()); err != journal.ErrClosed {
			t.Errorf("barrier for a late record: %v", err)
		}
	})
}
