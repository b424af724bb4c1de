package journal_test

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// reopen opens the journal of a disk, loads and replays, and returns what it was given.
func reopen(d *memstore.Disk, cfg journal.Config) (state string, err error) {
	s, err := d.Open()
	if err != nil {
		return "", err
	}
	l, err := journal.Open(s, cfg)
	if err != nil {
		return "", errors.Join(err, s.Close())
	}
	defer l.Close()
	from, err := l.LoadSnapshot(func(r io.Reader, _ journal.Index, _ uint64) error {
		b, err := io.ReadAll(io.LimitReader(r, 4))
		state = string(b)
		return err
	})
	if err != nil {
		return state, err
	}
	return state, l.Replay(from, func(_ journal.Index, rec []byte) error { state += string(rec); return nil })
}

// lettered makes a disk with a letter in each block, and snapshots after c (index 4) and e (6); the
// log starts with b or c.
func lettered(t *testing.T) *memstore.Disk {
	t.Helper()
	d := memstore.New(memstore.Options{})
	l, _ := start(t, d, journal.Config{})
	state := ""
	for _, c := range "abcdefg" {
		l.Append([]byte(string(c)))
		if err := l.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		state += string(c)
		if c == 'c' || c == 'e' {
			// Long enough for two chunks.
			if err := l.WriteSnapshot(l.Durable(), func(w io.Writer) error {
				_, err := io.WriteString(w, state+strings.Repeat(".", journal.MaxChunkBytes))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSnapshotDamage: a snapshot that is not what was written is refused, wherever the damage is
// and though the reader stops before it; an operator gets all records back from the one before.
func TestSnapshotDamage(t *testing.T) {
	f := func(name string, spoil func(d *memstore.Disk), want string) {
		t.Helper()
		d := lettered(t)
		spoil(d)
		var damage *journal.DamageError
		if _, err := reopen(d, journal.Config{}); !errors.As(err, &damage) || !strings.Contains(err.Error(), "generation") {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := reopen(d, journal.Config{RecoverTo: math.MaxUint64}); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s, recovered: %q, %v, want %q", name, got, err, want)
		}
		if got, err := reopen(d, journal.Config{}); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s, after recovery: %q, %v, want %q", name, got, err, want)
		}
	}
	const recovered = "abc.defg"
	f("first chunk", func(d *memstore.Disk) { d.FlipSnapshot(2, 0, 7) }, recovered)
	f("second chunk", func(d *memstore.Disk) { d.FlipSnapshot(2, 1, 9) }, recovered)
	f("checksum of a chunk", func(d *memstore.Disk) { d.FlipSnapshot(2, 1, 8*8+1) }, recovered)
	f("swapped", func(d *memstore.Disk) { d.SwapSnapshots(1, 2) }, "")
	f("both", func(d *memstore.Disk) { d.FlipSnapshot(1, 0, 0); d.FlipSnapshot(2, 0, 0) }, "")
	f("log behind the snapshot", func(d *memstore.Disk) {
		for len(d.Firsts()) > 2 {
			d.Remove(len(d.Firsts()) - 1)
		}
	}, "abc.d")
}

// TestDamagedMeta: a meta that does not decode costs nothing, because what is before its snapshot
// gives the same state; where neither meta does and the log has lost its beginning, the journal is
// refused.
func TestDamagedMeta(t *testing.T) {
	for _, where := range []struct {
		snapshot uint64
		bit      int
		want     string // four letters of the snapshot, and the log behind it
	}{{2, 8 * 30, "abc.defg"}, {2, 1, "abc.defg"}, {1, 8 * 30, "abcdfg"}} {
		d := lettered(t)
		d.FlipSnapshot(where.snapshot, -1, where.bit)
		for range 2 {
			if got, err := reopen(d, journal.Config{}); err != nil || got != where.want {
				t.Errorf("%+v: %q, %v", where, got, err)
			}
		}
	}
	d := lettered(t)
	d.FlipSnapshot(1, -1, 100)
	d.FlipSnapshot(2, -1, 100)
	var damage *journal.DamageError
	if got, err := reopen(d, journal.Config{}); !errors.As(err, &damage) || !strings.Contains(damage.Where, "generation 1") {
		t.Errorf("both: %q, %v", got, err)
	}
}

// TestRecoverGivesUpSnapshots: a snapshot that holds what is given up is given up with it.
func TestRecoverGivesUpSnapshots(t *testing.T) {
	d := lettered(t)
	if got, err := reopen(d, journal.Config{RecoverTo: 5}); got != "abc.d" || err != nil {
		t.Fatalf("recovered to 5: %q, %v", got, err)
	}
	if got, err := reopen(d, journal.Config{}); got != "abc.d" || err != nil {
		t.Fatalf("after recovery: %q, %v", got, err)
	}
	for range 3 {
		if _, err := reopen(d, journal.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	l, _ := startAfter(t, d, journal.Config{RecoverTo: 5}, 4)
	if l.Epoch() != 7 {
		t.Errorf("epoch %d after epochs 4 to 6 were given up", l.Epoch())
	}
	l.Close()
	var damage *journal.DamageError
	if _, err := reopen(lettered(t), journal.Config{RecoverTo: 2}); !errors.As(err, &damage) || damage.Index != 2 {
		t.Fatalf("recovered to before the log: %v", err)
	}
}

// TestHoles: a block that is missing in the middle is refused with its index, and so is a log whose
// beginning is missing.
func TestHoles(t *testing.T) {
	f := func(position int, want journal.Index) {
		t.Helper()
		d := memstore.New(memstore.Options{})
		l, _ := start(t, d, journal.Config{})
		for range 5 {
			l.Append([]byte("x"))
			if err := l.Barrier(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
		d.Remove(position)
		var damage *journal.DamageError
		if _, err := reopen(d, journal.Config{}); !errors.As(err, &damage) || damage.Index != want || damage.Where == "" {
			t.Errorf("without block %d: %v, want damage at %d", position, err, want)
		}
		if len(d.Firsts()) != 5 {
			t.Errorf("what was refused has changed: blocks at %v", d.Firsts())
		}
	}
	f(0, 1)
	f(1, 2)
	f(4, 5)
}

// TestForeignBlock: a sound block of another life of the same log does not follow.
func TestForeignBlock(t *testing.T) {
	make := func(rec string) *memstore.Disk {
		d := memstore.New(memstore.Options{})
		l, _ := start(t, d, journal.Config{})
		for range 3 {
			l.Append([]byte(rec))
			if err := l.Barrier(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
		return d
	}
	d := make("mine")
	d.SetBlock(2, make("other").Block(2))
	var damage *journal.DamageError
	if state, err := reopen(d, journal.Config{}); !errors.As(err, &damage) || damage.Index != 3 || state != "mine" {
		t.Errorf("%q, %v", state, err)
	}
}

// TestFailures: wherever the store fails, the journal reports it, and what it had acknowledged is
// there.
func TestFailures(t *testing.T) {
	full := errors.New("no space left")
	for n := 1; n < 30; n++ {
		d := memstore.New(memstore.Options{Seed: uint64(n)})
		acked := failing(d, n, full)
		d.FailAt(0, nil)
		d.Crash()
		state, err := reopen(d, journal.Config{})
		if state = strings.ReplaceAll(state, ".", ""); err != nil || !strings.HasPrefix(state, acked) {
			t.Fatalf("after failure at write %d: %q, %v, acknowledged %q", n, state, err, acked)
		}
	}
}

// failing works on a disk that fails at the n-th write and returns what was acknowledged.
func failing(d *memstore.Disk, n int, with error) (acked string) {
	s, err := d.Open()
	if err != nil {
		return ""
	}
	l, err := journal.Open(s, journal.Config{})
	if err != nil {
		return ""
	}
	defer l.Close()
	d.FailAt(n, with)
	if l.Replay(0, nil) != nil {
		return ""
	}
	for _, c := range "abcd" {
		l.Append([]byte(string(c)))
		if l.Barrier(context.Background()) != nil {
			return acked
		}
		acked += string(c)
		state := acked
		_ = l.WriteSnapshot(l.Durable(), func(w io.Writer) error {
			_, err := io.WriteString(w, (state + "....")[:4])
			return err
		})
	}
	return acked
}
