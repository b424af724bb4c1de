package rows

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// history is rows in the directory d of a disk: 90 rows of 3000 bytes in three SSTables that do
// not overlap, so that none is merged, and the mark 3 in another.
func history(t testing.TB) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	d := mustOpen(t, Config{Dir: "d", FS: mem})
	for i := range 3 {
		mustPut(t, d, i*30, i*30+30, 3000)
		if err := d.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	mustFlush(t, d, 3)
	mustClose(t, d)
	return mem
}

// namesOf lists the files of a directory with that in their name, sorted.
func namesOf(t testing.TB, fs vfs.FS, part string) (names []string) {
	t.Helper()
	all, err := fs.List("d")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.Contains(name, part) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestDamageIsRefused: what an opening can see is refused with the name of the file, and a refused
// directory stays as it was.
func TestDamageIsRefused(t *testing.T) {
	image := history(t)
	first := namesOf(t, image, ".sst")[0]
	manifest := namesOf(t, image, "MANIFEST-")[0]
	f := func(what, where string, change func(fs *vfs.MemFS) error) {
		t.Helper()
		fs := cloneOf(t, image)
		if err := change(fs); err != nil {
			t.Fatal(what, err)
		}
		before := fingerprint(t, fs, "d")
		d, err := Open(Config{Dir: "d", FS: fs})
		if wantDamage(t, what, err, where); err == nil {
			mustClose(t, d)
		}
		if !maps.Equal(before, fingerprint(t, fs, "d")) {
			t.Errorf("%s: the directory was changed", what)
		}
	}
	edit := func(name string, change func(b []byte) []byte) func(*vfs.MemFS) error {
		return func(fs *vfs.MemFS) error {
			writeAll(t, fs, "d/"+name, change(readAll(t, fs, "d/"+name)))
			return nil
		}
	}
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	f("no stamp", "ROWS", func(fs *vfs.MemFS) error { return fs.Remove("d/ROWS") })
	f("a torn stamp", "ROWS", edit("ROWS", cut))
	f("a changed stamp", "ROWS", edit("ROWS", func(b []byte) []byte { b[len(b)-2] = 'x'; return b }))
	f("a long stamp", "ROWS", edit("ROWS", func(b []byte) []byte { return append(b, make([]byte, 1000)...) }))
	f("an empty stamp", "ROWS", edit("ROWS", func([]byte) []byte { return nil }))
	f("the stamp of others", "ROWS", edit("ROWS", func([]byte) []byte { return []byte(stampText(newIdentity())) }))
	f("a file is missing", first, func(fs *vfs.MemFS) error { return fs.Remove("d/" + first) })
	f("a file is cut", first, edit(first, cut))
	f("a file is empty", first, edit(first, func([]byte) []byte { return nil }))
	f("no manifest", "MANIFEST", func(fs *vfs.MemFS) error {
		for _, name := range namesOf(t, fs, "MANIFEST-") {
			if err := fs.Remove("d/" + name); err != nil {
				return err
			}
		}
		return nil
	})
	f("a changed manifest", "MANIFEST", edit(manifest, func(b []byte) []byte { b[20] ^= 1; return b }))
}

// TestExchangedFilesAreRefused: pebble compares sizes alone, and panics when it merges them.
func TestExchangedFilesAreRefused(t *testing.T) {
	fs := vfs.NewMem()
	d := mustOpen(t, Config{Dir: "d", FS: fs})
	for i := range 9 {
		b := d.NewBatch()
		b.Set(keyOf(i), valueOf(1, 100))
		if err := errors.Join(b.Commit(), d.db.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, d)
	bySize := map[int]string{}
	for _, name := range namesOf(t, fs, ".sst") {
		b := readAll(t, fs, "d/"+name)
		other, ok := bySize[len(b)]
		if bySize[len(b)] = name; !ok {
			continue
		}
		writeAll(t, fs, "d/"+name, readAll(t, fs, "d/"+other))
		writeAll(t, fs, "d/"+other, b)
		before := fingerprint(t, fs, "d")
		_, err := Open(Config{Dir: "d", FS: fs})
		if wantDamage(t, "exchanged files", err, ".sst"); !maps.Equal(before, fingerprint(t, fs, "d")) {
			t.Error("the directory was changed")
		}
		return
	}
	t.Fatal("no two files have one size")
}

// TestOtherVersionsAreRefused names the version, and does not call it damage.
func TestOtherVersionsAreRefused(t *testing.T) {
	for _, text := range []string{"trunkline rows 1\nformat 30\n", "trunkline rows 3\nformat 30\n", "trunkline rows 10\n"} {
		fs := cloneOf(t, history(t))
		writeAll(t, fs, "d/ROWS", []byte(text))
		before := fingerprint(t, fs, "d")
		var damage *journal.DamageError
		_, err := Open(Config{Dir: "d", FS: fs})
		if err == nil || errors.As(err, &damage) || !strings.Contains(err.Error(), "another version") {
			t.Errorf("%q: %v", text, err)
		}
		if !maps.Equal(before, fingerprint(t, fs, "d")) {
			t.Error("the directory was changed")
		}
	}
}

// TestForeignDirectory: a directory with anything of others is not ours, and gets no lock either.
func TestForeignDirectory(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o700); err != nil {
		t.Fatal(err)
	}
	writeAll(t, fs, "d/letter", []byte("dear"))
	_, err := Open(Config{Dir: "d", FS: fs})
	wantDamage(t, "a letter", err, "ROWS")
	if names, _ := fs.List("d"); !slices.Equal(names, []string{"letter"}) {
		t.Error(names)
	}
	if err := fs.Remove("d/letter"); err != nil {
		t.Fatal(err)
	}
	writeAll(t, fs, "d/ROWS.new", []byte("trunk")) // of a crash
	d := mustOpen(t, Config{Dir: "d", FS: fs})
	mustPut(t, d, 0, 10, 10)
	mustClose(t, d)
}

// TestDamageIsReadAsDamage changes each byte in turn of a SSTable: every row is as it was put,
// or its reader gets the name of the file, or the opening does.
func TestDamageIsReadAsDamage(t *testing.T) {
	image := history(t)
	first := namesOf(t, image, ".sst")[0]
	whole := readAll(t, image, "d/"+first)
	read, refused := 0, 0
	for at := 0; at < len(whole); at += rounds.Pick(3907, 977) {
		fs := cloneOf(t, image)
		b := bytes.Clone(whole)
		b[at] ^= 0x40
		writeAll(t, fs, "d/"+first, b)
		d, err := Open(Config{Dir: "d", FS: fs})
		if err != nil {
			refused++
			wantDamage(t, "open", err, "")
			continue
		}
		found := false
		for i := range 90 {
			v, ok, err := d.Get(nil, keyOf(i))
			if err != nil {
				found = true
				wantDamage(t, "get", err, first)
			} else if !ok || !bytes.Equal(v, valueOf(i, 3000)) {
				t.Fatalf("byte %d: row %d is another (%v)", at, i, ok)
			}
		}
		if _, err := contentOf(d); err != nil {
			found = true
			wantDamage(t, "scan", err, first)
		}
		if found {
			read++
		}
		mustClose(t, d)
	}
	if read == 0 {
		t.Error("no damage was read")
	}
	t.Logf("%d read, %d refused", read, refused)
}

// TestMergeOfDamage: what a merge cannot read makes Full true, stays readable elsewhere, and ends
// nothing.
func TestMergeOfDamage(t *testing.T) {
	fs := cloneOf(t, history(t))
	first := namesOf(t, fs, ".sst")[0]
	b := readAll(t, fs, "d/"+first)
	b[len(b)/2] ^= 0x40
	writeAll(t, fs, "d/"+first, b)
	var book kit.Text
	d := mustOpen(t, Config{Dir: "d", FS: fs, Logger: book.Logger(), OnFatal: func(err error) { t.Error(err) }})
	for i := 0; !d.Full() && i < 1000; i++ {
		mustPut(t, d, 0, 90, 100)
		if err := d.Flush(uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if !d.Full() || !d.Broken() || !book.Has(first) {
		t.Errorf("full %v, broken %v", d.Full(), d.Broken())
	}
	if _, ok, err := d.Get(nil, keyOf(3)); !ok || err != nil {
		t.Error("the newer row:", ok, err)
	}
	mustClose(t, d)
}

// maxFuzzed bounds the bytes that a fuzzer may write into a directory.
const maxFuzzed = 64

// FuzzOpenDamaged changes, cuts, removes or exchanges files of a directory. Whatever is read is a
// row as it was put; nothing panics, before a merge and after it.
func FuzzOpenDamaged(f *testing.F) {
	for i := range byte(8) {
		f.Add([]byte{i, 0, 0, 10, 1})
		f.Add([]byte{i, 1, 0, 10, 1})
		f.Add([]byte{i, 2, 0, 10, 1})
		f.Add([]byte{i, 3, 1, 10, 1, i, 0, 200, 3, 9})
	}
	image := history(f)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > maxFuzzed {
			return
		}
		fs := cloneOf(t, image)
		for ; len(program) >= 5; program = program[5:] {
			spoil(t, fs, program)
		}
		d, err := Open(Config{Dir: "d", FS: fs})
		if err != nil {
			return
		}
		defer d.Close()
		onlyRows(t, d)
		b := d.NewBatch()
		b.Set(keyOf(1), valueOf(1, 3000))
		if errors.Join(b.Commit(), d.Flush(9)) == nil {
			onlyRows(t, d)
		}
	})
}

// onlyRows reads everything.
func onlyRows(t *testing.T, d *DB) {
	t.Helper()
	check := func(k, v []byte) {
		i := 0
		for i < 90 && !bytes.Equal(k, keyOf(i)) {
			i++
		}
		if i == 90 || !bytes.Equal(v, valueOf(i, 3000)) {
			t.Errorf("row %q was never put", k)
		}
	}
	_ = d.Scan(nil, nil, false, func(k, v []byte) bool { check(k, v); return true })
	for i := range 90 {
		if v, ok, err := d.Get(nil, keyOf(i)); ok && err == nil {
			check(keyOf(i), v)
		}
	}
}

// spoil does to a file what five bytes name: which, what, where, and with what.
func spoil(t *testing.T, fs *vfs.MemFS, p []byte) {
	names := namesOf(t, fs, "")
	if len(names) == 0 {
		return
	}
	name, other := "d/"+names[int(p[0])%len(names)], "d/"+names[int(p[4])%len(names)]
	b := readAll(t, fs, name)
	at := (int(p[2])<<8 | int(p[3])) % (len(b) + 1)
	switch p[1] % 4 {
	case 0:
		if at < len(b) {
			b[at] ^= p[4]
		}
		writeAll(t, fs, name, b)
	case 1:
		writeAll(t, fs, name, b[:at])
	case 2:
		if err := fs.Remove(name); err != nil {
			t.Fatal(err)
		}
	case 3:
		c := readAll(t, fs, other)
		writeAll(t, fs, other, b)
		writeAll(t, fs, name, c)
	}
}
