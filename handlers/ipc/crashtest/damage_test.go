package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit"
)

// ruin is the directory of a server that died, with what it held.
type ruin struct {
	dir    string
	mode   journal.Mode
	clock  *clock
	tape   *tape
	marked journal.Index // what was synced well before the end
	end    journal.Index
}

func (r *ruin) options() options { return options{state: runtime.Config{Now: r.clock.now}} }

// copyDir copies the files of a directory in use, as the death of the process would leave them.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if ok, err := vfs.Clone(vfs.Default, vfs.Default, from, to); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return to
}

// ruined is a server that was killed: with two snapshots, records that are synced in the log, and
// records at its end. Where it was killed before, the snapshots and some records after them are in
// one SSTable.
func ruined(t *testing.T, mode journal.Mode, before bool) *ruin {
	t.Helper()
	r := &ruin{mode: mode, clock: newClock(), tape: &tape{}}
	o := r.options()
	o.wrap, o.store.SyncEvery = r.tape.over, time.Millisecond
	dir := t.TempDir()
	s := mustBoot(t, nil, dir, mode, o)
	p := s.connect()
	p.now = r.clock.now
	n := 0
	fill := func(many, size int) {
		for range many {
			n++
			p.must(t, "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u%d"}`, n, n/8))
			p.must(t, "kernel", "RecordUsage", fmt.Sprintf(`{"pid":"p%d","llm_calls":1}`, n/2+1))
		}
		p.must(t, "engine", "CreateEnvelope", fmt.Sprintf(`{"raw_input":"%s"}`, strings.Repeat("z", size)))
	}
	for range 3 { // of two snapshots the older is there, and the journal from its index on
		fill(16, 100)
		if err := s.svc.Runtime().Store.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	fill(16, 6000)
	if before {
		mustStop(t, s)
		s = mustBoot(t, nil, dir, mode, o) // it sorts what was in the log
		p = s.connect()
		p.now = r.clock.now
	}
	defer func() { mustStop(t, s) }()
	fill(16, 8000)
	r.marked = s.log.Durable()
	file := filepath.Join(dir, "MARK")
	last := r.tape.upTo(r.marked)
	kit.Until(t, "a mark", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && len(b) > 10 && b[8] == byte(last[len(last)-1].first) && b[9] == byte(last[len(last)-1].first>>8)
	})
	r.dir = copyDir(t, dir) // the mark of this moment: what follows is the end that may be torn
	mark, err := os.ReadFile(filepath.Join(r.dir, "MARK"))
	if err != nil {
		t.Fatal(err)
	}
	fill(8, 9000)
	s.settle(t)
	r.end = s.log.Appended()
	r.dir = copyDir(t, dir)
	for _, name := range []string{"MARK", "SYNCED"} { // which hold the same
		if err := os.WriteFile(filepath.Join(r.dir, name), mark, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// verdict starts a server on what is left: all, a beginning that has what was synced long ago, or
// refused and why.
func (r *ruin) verdict(t *testing.T, dir string, wrap func(journal.Store) journal.Store) (string, error) {
	t.Helper()
	o := r.options()
	o.wrap = wrap
	s, err := boot(nil, dir, r.mode, o)
	if err != nil {
		return "refused", err
	}
	defer mustStop(t, s)
	last := s.log.Appended() - 1
	if got, want := s.svc.Runtime().Store.Digest(), digestOf(t, r.tape.upTo(last), r.mode, r.options().state); got != want {
		t.Fatalf("a state that never was: up to %d, digest %x, want %x", last, got, want)
	}
	switch {
	case last == r.end:
		return "all", nil
	case last >= r.marked && last < r.end:
		return "prefix", nil
	}
	t.Fatalf("the journal ends at %d of %d, and %d was synced", last, r.end, r.marked)
	return "", nil
}

// newest and oldest return a file with one end to its name.
func newest(t *testing.T, dir, suffix string) string { return pick(t, dir, suffix, false) }
func oldest(t *testing.T, dir, suffix string) string { return pick(t, dir, suffix, true) }

func pick(t *testing.T, dir, suffix string, first bool) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		t.Fatal("no file", suffix, err)
	}
	if first {
		return slices.Min(names)
	}
	return slices.Max(names)
}

func logFile(t *testing.T, dir string) string { return newest(t, dir, ".log") }

// newTable is the newest SSTable with something in it: one that only forgets what was before is
// small.
func newTable(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(names) == 0 {
		t.Fatal("no SSTable", err)
	}
	slices.Sort(names)
	size := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for _, name := range slices.Backward(names) {
		if size(name) >= 8<<10 {
			return name
		}
	}
	return slices.MaxFunc(names, func(a, b string) int { return int(size(a) - size(b)) })
}
func oldTable(t *testing.T, dir string) string { return oldest(t, dir, ".sst") }

// TestDamage is the table of durability §3.3 for a whole server: what was not acknowledged long ago
// may be torn and is cut, a snapshot that is not there may be replaced by the one before it,
// everything else that is not as it was written is refused, with the file and, where it is known,
// the index. What comes up is what once was.
func TestDamage(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			testDamage(t, ruined(t, mode, false))
			if testing.Short() {
				return
			}
			testSortedDamage(t, ruined(t, mode, true))
		})
	}
}

func flip(share float64) func([]byte) []byte {
	return func(b []byte) []byte { b[int(share*float64(len(b)-1))] ^= 0x10; return b }
}

func hole(share float64) func([]byte) []byte {
	return func(b []byte) []byte {
		n := min(4096, len(b)/2)
		at := int(share * float64(len(b)-n))
		for i := range b[at : at+n] {
			b[at+i] = 0
		}
		return b
	}
}

func half(b []byte) []byte { return b[:len(b)/2] }

func same(b []byte) []byte { return b }

// damage changes one file, nil removes it, and wants a verdict.
func (r *ruin) damage(t *testing.T, name string, file func(*testing.T, string) string, change func([]byte) []byte, want ...string) {
	t.Run(name, func(t *testing.T) {
		dir := copyDir(t, r.dir)
		path := file(t, dir)
		if change == nil {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else if b, err := os.ReadFile(path); err != nil || os.WriteFile(path, change(b), 0o600) != nil {
			t.Fatal(err)
		}
		place := filepath.Base(path)
		if len(want) == 2 {
			place = want[1]
		}
		r.expect(t, dir, want[0], place, nil)
	})
}

func testDamage(t *testing.T, r *ruin) {
	// The file of the log is longer than what was written to it: it was another log before. What
	// counts is where the last block ends.
	last := r.tape.upTo(r.end)
	tail := last[len(last)-1].bytes
	tail = tail[len(tail)-16:]
	written := func(b []byte) int { return bytes.LastIndex(b, tail) + len(tail) }
	// A log that ends too early shows nothing of where its end is lost: then the directory is
	// named.
	const dir = "copy"
	r.damage(t, "nothing", logFile, same, "all")
	r.damage(t, "torn", logFile, func(b []byte) []byte { return b[:written(b)-10] }, "prefix")
	r.damage(t, "last 4 KiB zeroed", logFile, func(b []byte) []byte { n := written(b); clear(b[n-4096 : n]); return b }, "prefix")
	r.damage(t, "garbage appended", logFile, func(b []byte) []byte { return append(b, slices.Repeat([]byte{0xa7}, 5000)...) }, "all")
	r.damage(t, "flip in the last record", logFile, func(b []byte) []byte { b[written(b)-20] ^= 4; return b }, "prefix")
	part := func(share float64) func([]byte) []byte { // of what was written
		return func(b []byte) []byte { flip(share)(b[:written(b)]); return b }
	}
	r.damage(t, "flip in a synced record", logFile, part(0.3), "refused", dir)
	r.damage(t, "hole in synced records", logFile, func(b []byte) []byte { hole(0.2)(b[:written(b)]); return b }, "refused", dir)
	r.damage(t, "log cut in synced records", logFile, func(b []byte) []byte { return b[:written(b)/2] }, "refused", dir)
	r.damage(t, "log missing", logFile, nil, "refused", dir)
	// A snapshot whose meta is damaged, or a file of it missing or cut, is passed over: these are
	// so small that all of one is in one block.
	r.damage(t, "flip in the snapshot", newTable, flip(0.3), "all")
	r.damage(t, "hole in the snapshot", newTable, hole(0.05), "all")
	r.damage(t, "snapshot missing", newTable, nil, "all")
	r.damage(t, "snapshot cut", newTable, half, "all")
	r.damage(t, "old file missing", oldTable, nil, "all")
	t.Run("swapped files", func(t *testing.T) {
		dir := copyDir(t, r.dir)
		a, b := oldTable(t, dir), newTable(t, dir)
		if a == b {
			b = newest(t, dir, ".sst")
		}
		for _, move := range [][2]string{{a, a + "x"}, {b, a}, {a + "x", b}} {
			if err := os.Rename(move[0], move[1]); err != nil {
				t.Fatal(err)
			}
		}
		r.expect(t, dir, "all", "", nil)
	})
	r.forge(t)
}

// forge has the store give out, with a good checksum, snapshots that are not those that were
// written.
func (r *ruin) forge(t *testing.T) {
	f := func(name string, chunk func([]byte) []byte, other uint64) {
		t.Run(name, func(t *testing.T) {
			r.expect(t, copyDir(t, r.dir), "refused", "generation", func(s journal.Store) journal.Store { return &forger{s, other, chunk} })
		})
	}
	f("flip in a chunk that the store let through", flip(0.5), 0)
	f("chunk cut that the store let through", half, 0)
	f("swapped generations", same, 1)
}

// testSortedDamage damages the file in which everything is that is not in the log, at places all
// over it.
func testSortedDamage(t *testing.T, r *ruin) {
	r.damage(t, "sorted/nothing", newTable, same, "all")
	r.damage(t, "sorted/missing", newTable, nil, "refused")
	refused, places := 0, 0
	for share := 0.03; share < 1; share += 0.12 {
		for name, change := range map[string]func(float64) func([]byte) []byte{"flip": flip, "hole": hole} {
			places++
			t.Run(fmt.Sprintf("sorted/%s at %.2f", name, share), func(t *testing.T) {
				dir := copyDir(t, r.dir)
				path := newTable(t, dir)
				b, err := os.ReadFile(path)
				if err != nil || os.WriteFile(path, change(share)(b), 0o600) != nil {
					t.Fatal(err)
				}
				got, err := r.verdict(t, dir, nil) // of what no recovery needs it may know nothing
				if got == "refused" {
					refused++
					var damage *journal.DamageError
					if !errors.As(err, &damage) || !strings.Contains(err.Error(), filepath.Base(path)) {
						t.Errorf("the error does not name %s: %s", path, text(err))
					}
				} else if got != "all" {
					t.Errorf("%s of what is in an SSTable", got)
				}
				t.Logf("%s %.200s", got, text(err))
			})
		}
	}
	if refused < places/4 {
		t.Errorf("%d of %d damages were noticed", refused, places)
	}
}

// expect compares the verdict, twice where it is a refusal: it changes nothing.
func (r *ruin) expect(t *testing.T, dir, want, place string, wrap func(journal.Store) journal.Store) {
	t.Helper()
	got, err := r.verdict(t, dir, wrap)
	if got != want {
		t.Fatalf("%s, want %s: %s", got, want, text(err))
	}
	if want != "refused" {
		return
	}
	var damage *journal.DamageError
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), place) {
		t.Errorf("the error does not name %s: %s", place, text(err))
	} else {
		t.Logf("index %d, %.300s", damage.Index, text(err))
	}
	if _, again := r.verdict(t, dir, wrap); again == nil || again.Error() != err.Error() {
		t.Errorf("the second refusal is another: %s", text(again))
	}
}

// forger gives out another snapshot than asked for, if other is 1, and changes its chunks.
type forger struct {
	journal.Store
	other uint64
	chunk func([]byte) []byte
}

// ReadSnapshot implements journal.Snapshots.
func (f *forger) ReadSnapshot(g uint64, give func([]byte) error) error {
	return f.Store.ReadSnapshot(g^f.other, func(b []byte) error { return give(f.chunk(slices.Clone(b))) })
}
