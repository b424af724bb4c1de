package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/rounds"
)

// digest is the state that the records of the matrix build: each record folds into it, so that it
// differs after every history.
type digest [sha256.Size]byte

func (d *digest) apply(rec []byte) { *d = sha256.Sum256(append(d[:], rec...)) }

// history is a journal with several snapshots, SSTables and logs, and the digest after each of
// its records.
type history struct {
	t      *testing.T
	store  *Store
	log    *journal.Log
	cfg    Config
	faulty *faulty
	after  map[journal.Index]digest
	now    digest
	random *rand.Rand
	marked journal.Index // what a start may not lose
	older  []string      // copies of the directory on its way
}

func newHistory(t *testing.T, mode journal.Mode) *history {
	noTables := &faulty{n: 0, err: errors.New("no table now"), match: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst")
	}}
	h := &history{t: t, faulty: noTables, after: map[journal.Index]digest{}, random: rand.New(rand.NewPCG(1, uint64(mode)))}
	h.cfg = quiet(Config{Dir: t.TempDir(), Mode: mode, FS: errorfs.Wrap(vfs.Default, noTables), SnapshotRate: -1})
	return h
}

// open starts a session, as a server does.
func (h *history) open() {
	h.t.Helper()
	h.store = mustOpen(h.t, h.cfg)
	l, last, got, err := start(h.store, h.cfg.Mode)
	if err != nil || got != h.now {
		h.t.Fatal("the history does not open:", last, err)
	}
	h.log = l
	h.after[l.Durable()] = h.now
}

// start replays a store and returns the last index and the state.
func start(s journal.Store, mode journal.Mode) (l *journal.Log, last journal.Index, d digest, err error) {
	if l, err = journal.Open(s, journal.Config{Mode: mode}); err != nil {
		return nil, 0, d, err
	}
	last = l.Appended()
	from, err := l.LoadSnapshot(func(r io.Reader, _ journal.Index, _ uint64) error {
		_, err := io.ReadFull(r, d[:])
		return err
	})
	if err == nil {
		err = l.Replay(from, func(_ journal.Index, rec []byte) error { d.apply(rec); return nil })
	}
	return l, last, d, err
}

// write appends n blocks of 3000 bytes.
func (h *history) write(n int) {
	h.t.Helper()
	for range n {
		rec := make([]byte, 3000)
		for i := range rec {
			rec[i] = byte(h.random.Uint32())
		}
		i := h.log.Append(rec)
		h.now.apply(rec)
		h.after[i] = h.now
		if err := h.log.Barrier(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *history) snapshot() {
	h.t.Helper()
	filling := make([]byte, 300<<10) // two chunks
	for i := range filling {
		filling[i] = byte(h.random.Uint32())
	}
	err := h.log.WriteSnapshot(h.log.Durable(), func(w io.Writer) error {
		_, err := w.Write(append(h.now[:], filling...))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) sort() {
	h.t.Helper()
	if err := h.store.flush(); err != nil {
		h.t.Fatal(err)
	}
}

// mark notes that what was written so far may not be lost any more.
func (h *history) mark() {
	h.store.syncAndMark()
	h.marked = h.log.Durable()
}

// keep keeps a copy of the directory, for older copies of its files.
func (h *history) keep() {
	h.older = append(h.older, copyDir(h.t, h.cfg.Dir))
}

func (h *history) close() {
	h.t.Helper()
	if err := h.log.Close(); err != nil {
		h.t.Fatal(err)
	}
}

// run lives two sessions. The second one is killed, with logs that are not sorted, or closed. It
// returns the directory.
func (h *history) run(killed bool) string {
	h.open()
	addRows(h.t, h.cfg.Dir)
	h.write(30)
	h.sort()
	h.snapshot()
	h.write(20)
	h.mark()
	h.keep()
	h.snapshot()
	h.sort()
	h.write(20)
	h.sort()
	h.snapshot()
	h.close()
	h.keep()
	h.open()
	h.write(20)
	h.sort()
	h.snapshot()
	h.write(5)
	h.sort()
	h.mark()
	h.keep()
	if !killed {
		h.write(15)
		h.close()
		h.marked = h.log.Durable()
		return h.cfg.Dir
	}
	h.faulty.n = -1 // one log after the other is begun and none is sorted
	h.write(400)
	h.mark()
	h.write(5)
	dir := copyDir(h.t, h.cfg.Dir)
	h.faulty.n = 0
	h.close()
	return dir
}

// damage is one change of one file, or of two.
type damage struct {
	name  string
	file  string
	apply func(dir string) error
}

func editing(name, file string, change func(b []byte) []byte) damage {
	return damage{name, file, func(dir string) error {
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, change(b), 0o600)
	}}
}

// swap exchanges two files.
func swap(dir, a, b string) error {
	a, b = filepath.Join(dir, a), filepath.Join(dir, b)
	return errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b))
}

// damages lists all that is done to the files of dir.
func (h *history) damages(dir string) (list []damage) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	var names []string
	sizes := map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			names, sizes[e.Name()] = append(names, e.Name()), info.Size()
		}
	}
	for _, name := range names {
		list = append(list, damagesOf(name, int(sizes[name]))...)
		for _, old := range h.older {
			list = append(list, h.olderCopy(dir, old, name)...)
		}
	}
	for i, a := range names {
		for _, b := range names[i+1:] {
			if kindOf(a) == kindOf(b) && filepath.Ext(a) == filepath.Ext(b) && sizes[a]+sizes[b] > 0 {
				list = append(list, damage{"swapped with " + b, a, func(dir string) error { return swap(dir, a, b) }})
			}
		}
	}
	return list
}

func damagesOf(name string, size int) (list []damage) {
	list = append(list, damage{"removed", name, func(dir string) error { return os.Remove(filepath.Join(dir, name)) }})
	if size == 0 {
		return list
	}
	for i, share := range []float64{0, 0.013, 0.21, 0.48, 0.77, 0.97, 1} {
		at := int(share * float64(size-1))
		list = append(list, editing(fmt.Sprint("flip at ", at), name, func(b []byte) []byte { b[at] ^= 1 << i; return b }))
	}
	for _, at := range slices.Compact([]int{0, size / 2 &^ 4095, (size - 1) &^ 4095}) {
		list = append(list, editing(fmt.Sprint("zero page at ", at), name, func(b []byte) []byte {
			clear(b[at:min(at+4096, len(b))])
			return b
		}))
	}
	for _, n := range slices.Compact([]int{0, size / 3, size * 9 / 10, size - 1}) {
		list = append(list, editing(fmt.Sprint("cut at ", n), name, func(b []byte) []byte { return b[:n] }))
	}
	return list
}

func (h *history) olderCopy(dir, old, name string) []damage {
	now, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(old, name))
	if err != nil || bytes.Equal(b, now) {
		return nil
	}
	return []damage{editing("older copy of "+filepath.Base(filepath.Dir(old)), name, func([]byte) []byte { return b })}
}

// inventory is all that a directory holds: names, sizes, times of change and bytes.
func inventory(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		var b []byte
		if err == nil && !e.IsDir() {
			b, err = os.ReadFile(path)
		}
		all[path[len(dir):]] = fmt.Sprintf("%d %v %x", info.Size(), info.ModTime().UnixNano(), sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outcome of a start on a damaged directory.
const (
	openedRight = "opened right"
	refusedSame = "refused, unchanged"
	changed     = "refused and changed"
	wrong       = "wrong"
	panicked    = "panic"
)

// try starts on a damaged directory, works on where that is possible, and starts again.
func (h *history) try(d damage, dir string) (outcome, words string) {
	before := inventory(h.t, dir)
	defer func() {
		if r := recover(); r != nil {
			outcome, words = panicked, fmt.Sprint(r)
		}
	}()
	last, got, err := h.once(dir)
	if err != nil {
		if after := inventory(h.t, dir); !maps.Equal(before, after) {
			return changed, fmt.Sprintf("%v; %s", err, difference(before, after))
		}
		return refusedSame, err.Error()
	}
	if want, ok := h.after[last]; !ok || want != got {
		return wrong, fmt.Sprintf("the state after %d is not what was recorded", last)
	}
	if last < h.marked {
		return wrong, fmt.Sprintf("ends at %d, but %d was marked", last, h.marked)
	}
	again, got, err := h.once(dir)
	if err != nil || again != last+2 || got != next(h.after[last]) {
		return wrong, fmt.Sprintf("the second start ends at %d after %d: %v", again, last, err)
	}
	return openedRight, ""
}

// one is the record that each start of try appends.
func one() []byte { return binary.BigEndian.AppendUint64(nil, 1) }

func next(d digest) digest {
	d.apply(one())
	return d
}

// once starts, appends a record, sorts and closes. An error is that of the start.
func (h *history) once(dir string) (last journal.Index, d digest, err error) {
	s, err := Open(quiet(Config{Dir: dir, Mode: h.cfg.Mode}))
	if err != nil {
		return 0, d, err
	}
	l, last, d, err := start(s, h.cfg.Mode)
	if err != nil {
		if l == nil {
			return 0, d, errors.Join(err, s.Close())
		}
		return 0, d, errors.Join(err, l.Close())
	}
	l.Append(one())
	if err := l.Barrier(h.t.Context()); err != nil {
		h.t.Error("nothing can be written after a start: ", err)
	}
	_ = s.flush() // a merge that follows it may meet damage that no start reads
	if err := l.Close(); err != nil {
		h.t.Error("no orderly close after a start: ", err)
	}
	return last, d, nil
}

func difference(before, after map[string]string) string {
	var list []string
	for name, is := range after {
		switch was, ok := before[name]; {
		case !ok:
			list = append(list, name+" made")
		case was != is:
			list = append(list, name+" changed")
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			list = append(list, name+" removed")
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestReadingChangesNothing: a store that is replayed and closed again leaves its directory as it
// was, and the next one has all.
func TestReadingChangesNothing(t *testing.T) {
	h := newHistory(t, journal.Always)
	dir := h.run(true)
	before := inventory(t, dir)
	for range 2 {
		s := mustOpen(t, Config{Dir: dir})
		if last, err := contents(s); err != nil || last != h.log.Durable() {
			t.Errorf("read up to %d, want %d: %v", last, h.log.Durable(), err)
		}
		if st := s.Stats(); st.DiskBytes == 0 || st.LastBlock == 0 {
			t.Errorf("stats of what is only read: %+v", st)
		}
		mustClose(t, s)
		if after := inventory(t, dir); !maps.Equal(before, after) {
			t.Fatal(difference(before, after))
		}
	}
}

// contents reads what a start may read, and returns the last index.
func contents(s *Store) (last journal.Index, err error) {
	list, err := s.ListSnapshots()
	for _, g := range list {
		err = errors.Join(err, s.ReadSnapshot(g.Number, func([]byte) error { return nil }))
	}
	return last, errors.Join(err, s.Blocks(0, func(first journal.Index, b []byte) error {
		last = journal.LastOf(first, b)
		return nil
	}))
}

// TestDamageMatrix damages each file of real directories in every way that disks, copies and people
// have. A start has exactly the state that must be there, or is refused and leaves the directory as
// it was. LONG_TESTS=24 tries all of them.
func TestDamageMatrix(t *testing.T) {
	step := rounds.Pick(96, rounds.Step(96, 24))
	counts := map[string]int{}
	for _, mode := range bothModes {
		for _, killed := range []bool{true, false} {
			h := newHistory(t, mode)
			dir := h.run(killed)
			for i, d := range h.damages(dir) {
				if i%step != 0 {
					continue
				}
				damaged := copyDir(t, dir)
				if err := d.apply(damaged); err != nil {
					t.Fatal(err)
				}
				outcome, words := h.try(d, damaged)
				counts[outcome]++
				name := fmt.Sprintf("%s, killed %v: %s %s", mode, killed, d.file, d.name)
				if outcome != openedRight && outcome != refusedSame {
					t.Errorf("%s: %s: %s", name, outcome, words)
				} else if testing.Verbose() {
					t.Logf("%s: %s %.200s", name, outcome, words)
				}
				if err := os.RemoveAll(damaged); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Log(counts)
}
