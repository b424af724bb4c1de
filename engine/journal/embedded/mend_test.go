package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// metaOf returns the newest SSTable with the meta of a snapshot, and where it is in there.
func metaOf(t *testing.T, dir string, g journal.Snapshot) (name string, at int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	for _, path := range slices.Backward(names) {
		b, failed := os.ReadFile(path)
		if i := bytes.Index(b, g.Meta); failed == nil && i >= 0 {
			return filepath.Base(path), i
		}
	}
	t.Fatalf("no SSTable has the meta of generation %d (%v)", g.Number, err)
	return "", 0
}

// snapshotsOf lists the snapshots in a directory, and the SSTables that hold chunks of each.
func snapshotsOf(t *testing.T, dir string) (list []journal.Snapshot, files map[uint64][]string) {
	t.Helper()
	s := mustOpen(t, Config{Dir: dir, Mode: mustMode(t, dir)})
	defer mustClose(t, s)
	list, err := s.ListSnapshots()
	levels, failed := s.db.SSTables()
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	files = map[uint64][]string{}
	for _, f := range slices.Concat(levels...) {
		if f.Smallest.UserKey[0] == kindChunk && f.Size > 1<<10 {
			g := keyNumber(f.Smallest.UserKey)
			files[g] = append(files[g], fmt.Sprintf("%06d.sst", uint64(f.BackingSSTNum)))
		}
	}
	return list, files
}

func mustMode(t *testing.T, dir string) journal.Mode {
	t.Helper()
	v, err := Inspect(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return v.Mode()
}

// unread is the name of a damage that a start need not find.
const unread = "flip around the meta"

// spoiled starts on a copy of dir after a damage of a snapshot: the state is right, the warning
// names the snapshot and the file, and the damage is gone.
func (h *history) spoiled(dir string, d damage, g uint64) {
	h.t.Helper()
	name := fmt.Sprintf("%s, generation %d: %s %s", h.cfg.Mode, g, d.file, d.name)
	damaged := copyDir(h.t, dir)
	defer os.RemoveAll(damaged)
	if err := d.apply(damaged); err != nil {
		h.t.Fatal(err)
	}
	once := copyDir(h.t, damaged)
	defer os.RemoveAll(once)
	if outcome, words := h.try(d, damaged); outcome != openedRight {
		h.t.Errorf("%s: %s: %s", name, outcome, words)
		return
	}
	book := h.claimed(once)
	gaveUp := book.Has("gives up a snapshot")
	if gaveUp != (book.Has(fmt.Sprint("generation=", g)) && book.Has(d.file)) || !gaveUp && d.name != unread {
		h.t.Errorf("%s: the warning does not name both: %s", name, book.String())
	}
	if book = h.claimed(once); book.Has("level=WARN") || book.Has("level=ERROR") {
		h.t.Errorf("%s: it is still there after a start: %s", name, book.String())
	}
	s := mustOwn(h.t, Config{Dir: once, Mode: h.cfg.Mode})
	defer mustClose(h.t, s)
	if last, err := contents(s); err != nil || last < h.marked {
		h.t.Errorf("%s: after a start all up to %d is there: %v", name, last, err)
	}
	if err := s.db.Compact(h.t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		h.t.Errorf("%s: a merge of all: %v", name, err)
	}
}

// claimed starts, which is to succeed, and returns what was logged.
func (h *history) claimed(dir string) *kit.Text {
	h.t.Helper()
	book := new(kit.Text)
	s, err := Open(quiet(Config{Dir: dir, Mode: h.cfg.Mode, Logger: book.Logger()}))
	if err != nil {
		h.t.Fatal(err)
	}
	l, err := journal.Open(s, journal.Config{Mode: h.cfg.Mode, Logger: book.Logger()})
	if err != nil {
		h.t.Fatal(errors.Join(err, s.Close()))
	}
	from, err := l.LoadSnapshot(func(r io.Reader, _ journal.Index, _ uint64) error { return nil })
	if err == nil {
		err = l.Replay(from, func(journal.Index, []byte) error { return nil })
	}
	if err = errors.Join(err, l.Close()); err != nil {
		h.t.Fatal(err)
	}
	return book
}

// oneOrBoth returns true and false in the long form, and else one of them for each mode.
func oneOrBoth(mode journal.Mode) []bool {
	if rounds.Long() {
		return []bool{true, false}
	}
	return []bool{mode == journal.Always}
}

// TestDamagedMetas flips bits of the metas of each snapshot, and of all that is around them in
// their file: the state comes from the other snapshot.
func TestDamagedMetas(t *testing.T) {
	const around = 1200
	step := rounds.Pick(600, rounds.Step(600, 300))
	for _, mode := range someModes() {
		for _, killed := range oneOrBoth(mode) {
			h := newHistory(t, mode)
			dir := h.run(killed)
			list, _ := snapshotsOf(t, dir)
			if len(list) != 2 {
				t.Fatal(list)
			}
			for _, g := range list {
				name, at := metaOf(t, dir, g)
				for i, n := 0, around; i < n; i += step {
					what := fmt.Sprint("flip at ", i, " of the meta")
					if i >= len(g.Meta) {
						what = unread
					}
					h.spoiled(dir, editing(what, name, func(b []byte) []byte {
						b[min(at+i, len(b)-1)] ^= 1 << (i % 8)
						n = len(b) - at
						return b
					}), g.Number)
				}
			}
		}
	}
}

// TestLostSnapshotFiles: a SSTable of a snapshot that is removed or cut costs that snapshot
// alone. In other than the long form every second one is tried.
func TestLostSnapshotFiles(t *testing.T) {
	n := 0
	for _, mode := range bothModes {
		h := newHistory(t, mode)
		dir := h.run(mode == journal.Always)
		list, files := snapshotsOf(t, dir)
		for _, g := range list {
			for _, name := range files[g.Number] {
				for _, d := range []damage{
					{"removed", name, func(dir string) error { return os.Remove(filepath.Join(dir, name)) }},
					editing("cut", name, func(b []byte) []byte { return b[:len(b)/2] }),
					editing("emptied", name, func([]byte) []byte { return nil }),
				} {
					if n++; n%rounds.Step(2, 2) == 0 {
						h.spoiled(dir, d, g.Number)
					}
				}
			}
		}
	}
}

// refuses starts on a damaged directory: it is refused with damage, in one of the files, and left
// as it was.
func (h *history) refuses(name, dir string, files ...string) {
	h.t.Helper()
	outcome, words := h.try(damage{}, dir)
	named := slices.ContainsFunc(files, func(file string) bool { return strings.Contains(words, file) })
	if outcome != refusedSame || len(files) > 0 && !named {
		h.t.Errorf("%s, %s: %s: %s", h.cfg.Mode, name, outcome, words)
	}
}

// TestNoSnapshotIsLeft: with the beginning of the log gone, damage of both is refused.
func TestNoSnapshotIsLeft(t *testing.T) {
	for _, mode := range bothModes {
		h := newHistory(t, mode)
		dir := h.run(false)
		list, files := snapshotsOf(t, dir)
		a, b := files[list[0].Number][0], files[list[1].Number][0]
		damaged := copyDir(t, dir)
		without(t, damaged, a, b)
		h.refuses("both removed", damaged, a, b)
		damaged = copyDir(t, dir)
		for _, g := range list {
			name, at := metaOf(t, dir, g)
			edit(t, filepath.Join(damaged, name), func(b []byte) []byte { b[at] ^= 1; return b })
		}
		h.refuses("both flipped", damaged, a, b)
	}
}

// TestDamagedMetaAndLostLog: what the meta would show, that the log has lost its end, the marks
// show.
func TestDamagedMetaAndLostLog(t *testing.T) {
	for _, mode := range bothModes {
		h := newHistory(t, mode)
		h.open()
		h.write(10)
		h.snapshot()
		h.sort()
		h.write(10)
		h.snapshot()
		dir := copyDir(t, h.cfg.Dir)
		h.close()
		list, _ := snapshotsOf(t, dir)
		name, at := metaOf(t, dir, list[len(list)-1])
		edit(t, filepath.Join(dir, name), func(b []byte) []byte { b[at] ^= 4; return b })
		without(t, dir, "*.log")
		h.refuses("meta and logs", dir)
	}
}

// asEarlier makes a directory as earlier versions left it: the metas are in one place, apart from
// the chunks.
func asEarlier(t *testing.T, dir string, sorted bool) {
	t.Helper()
	s := mustOwn(t, Config{Dir: dir, Mode: mustMode(t, dir)})
	list, err := s.ListSnapshots()
	b := s.db.NewBatch()
	for _, g := range list {
		value, _, failed := s.meta(g.Number)
		err = errors.Join(err, failed, b.Set(appendKey(nil, kindMeta, 0, g.Number), value, nil),
			b.Delete(appendChunkKey(nil, 0, g.Number, metaSeq), nil))
	}
	gone := appendKey(nil, kindMeta, 0, 1) // of one that was dropped
	err = errors.Join(err, b.Set(gone, []byte("0000 and a meta"), nil), b.Delete(gone, nil), b.Commit(pebble.Sync))
	if sorted {
		err = errors.Join(err, s.flush())
	}
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	mustClose(t, s)
}

// TestDirectoryOfAnEarlierVersion: its snapshots count, and the first change puts the metas where
// damage of one hides no other.
func TestDirectoryOfAnEarlierVersion(t *testing.T) {
	for _, mode := range bothModes {
		for _, sorted := range oneOrBoth(mode) {
			h := newHistory(t, mode)
			dir := h.run(false)
			before, files := snapshotsOf(t, dir)
			asEarlier(t, dir, sorted)
			for i := range journal.Index(5) { // the claims that follow
				h.after[h.log.Durable()+i] = h.now
			}
			for _, g := range before {
				name := files[g.Number][0]
				h.spoiled(dir, editing("flip in the end", name, func(b []byte) []byte { b[len(b)-10] ^= 1; return b }), g.Number)
				h.spoiled(dir, damage{"removed", name, func(dir string) error { return os.Remove(filepath.Join(dir, name)) }}, g.Number)
			}
			for range 2 {
				list, _ := snapshotsOf(t, dir)
				if len(list) != 2 || !bytes.Equal(list[1].Meta, before[1].Meta) {
					t.Fatalf("%s: generations %v, want %v", mode, list, before)
				}
				if book := h.claimed(dir); book.Has("level=WARN") || book.Has("level=ERROR") {
					t.Fatalf("%s: %s", mode, book.String())
				}
			}
			s := mustOwn(t, Config{Dir: dir, Mode: mode})
			if s.early.there {
				t.Errorf("%s: metas are still where they were", mode)
			}
			mustClose(t, s)
			list, _ := snapshotsOf(t, dir)
			name, at := metaOf(t, dir, list[0])
			h.spoiled(dir, editing("flip", name, func(b []byte) []byte { b[at] ^= 1; return b }), list[0].Number)
		}
	}
}

// TestDamagedMetasOfAnEarlierVersion hide all its snapshots: the whole log makes up for them, where
// it is there.
func TestDamagedMetasOfAnEarlierVersion(t *testing.T) {
	for _, mode := range bothModes {
		h := newHistory(t, mode)
		h.open()
		h.write(10)
		h.snapshot()
		h.write(10)
		h.close()
		dir := copyDir(t, h.cfg.Dir)
		list, _ := snapshotsOf(t, dir)
		asEarlier(t, dir, true)
		name, at := metaOf(t, dir, list[0])
		h.spoiled(dir, editing("flip", name, func(b []byte) []byte { b[at] ^= 1; return b }), list[0].Number)

		h = newHistory(t, mode)
		dir = h.run(false)
		list, _ = snapshotsOf(t, dir)
		asEarlier(t, dir, true)
		name, at = metaOf(t, dir, list[0])
		edit(t, filepath.Join(dir, name), func(b []byte) []byte { b[at] ^= 1; return b })
		h.refuses("metas of an earlier version", dir, name)
	}
}
