package rows

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestRowsAreRead(t *testing.T) {
	for name, cfg := range map[string]Config{"disk": {Dir: t.TempDir() + "/a/b"}, "memory": {Memory: true}} {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, cfg)
			defer mustClose(t, d)
			if _, ok, err := d.Get(nil, keyOf(1)); ok || err != nil {
				t.Fatal("a new directory has rows:", err)
			}
			mustPut(t, d, 0, 30, 100)
			b := d.NewBatch()
			b.Set([]byte("x"), []byte("1"))
			b.Delete(keyOf(3))
			b.Set([]byte("x"), []byte("2"))
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
			for _, flushed := range []bool{false, true} {
				if v, ok, err := d.Get([]byte("dst:"), []byte("x")); !ok || err != nil || string(v) != "dst:2" {
					t.Errorf("flushed %v: %q %v %v", flushed, v, ok, err)
				}
				if v, ok, err := d.Get([]byte("dst:"), keyOf(3)); ok || err != nil || string(v) != "dst:" {
					t.Errorf("flushed %v: %q %v %v", flushed, v, ok, err)
				}
				mustFlush(t, d, 7)
			}
		})
	}
}

func TestScan(t *testing.T) {
	d := mustOpen(t, Config{Memory: true})
	defer mustClose(t, d)
	if err := d.Scan(nil, nil, false, func(_, _ []byte) bool { t.Error("a row"); return true }); err != nil {
		t.Error(err)
	}
	mustPut(t, d, 0, 10, 8)
	mustFlush(t, d, 1)
	f := func(lower, upper []byte, reverse bool, stop int, want ...int) {
		t.Helper()
		var got []int
		err := d.Scan(lower, upper, reverse, func(k, v []byte) bool {
			i := int(k[len(k)-1] - '0')
			if !bytes.Equal(k, keyOf(i)) || !bytes.Equal(v, valueOf(i, 8)) {
				t.Errorf("row %q", k)
			}
			got = append(got, i)
			return i != stop
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q to %q: %v (%v), want %v", lower, upper, got, err, want)
		}
	}
	f(nil, nil, false, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	f([]byte{0}, nil, true, 7, 9, 8, 7)
	f(keyOf(3), keyOf(6), false, -1, 3, 4, 5)
	f(keyOf(3), keyOf(6), true, -1, 5, 4, 3)
	f(keyOf(3), keyOf(3), false, -1)
	f([]byte("z"), nil, false, -1)
	f(nil, []byte{0}, false, -1)
	f(nil, []byte{}, false, -1)
	func() {
		defer func() {
			if recover() != "mine" {
				t.Error("a panic of the caller was swallowed")
			}
		}()
		_ = d.Scan(nil, nil, false, func(_, _ []byte) bool { panic("mine") })
	}()
	f(nil, nil, false, 1, 0, 1)
}

func TestBatchRefusesRows(t *testing.T) {
	d := mustOpen(t, Config{Memory: true})
	defer mustClose(t, d)
	b := d.NewBatch()
	f := func(key, value []byte, want error) {
		t.Helper()
		b.Set([]byte("good"), nil)
		b.Set(key, value)
		if err := b.Commit(); !errors.Is(err, want) {
			t.Errorf("%.10q: %v", key, err)
		}
		if _, ok, _ := d.Get(nil, []byte("good")); ok {
			t.Errorf("%.10q: a part of the batch was put", key)
		}
	}
	f(nil, nil, errRow)
	f([]byte{0, 1}, nil, errRow)
	f(make([]byte, maxKeyBytes+1), nil, errRow)
	f(bytes.Repeat([]byte("k"), maxKeyBytes+1), nil, errRow)
	f([]byte("k"), make([]byte, maxValueBytes+1), errRow)
	b.Delete(nil)
	if err := b.Commit(); !errors.Is(err, errRow) {
		t.Error(err)
	}
	b.Set(bytes.Repeat([]byte("k"), maxKeyBytes), nil)
	if err := b.Commit(); err != nil {
		t.Error(err)
	}
}

// TestLargeBatches: a batch larger than the memory for rows is put like any other.
func TestLargeBatches(t *testing.T) {
	mem := vfs.NewMem()
	d := mustOpen(t, Config{Dir: "d", FS: mem, MemTableBytes: 64 << 10})
	b := d.NewBatch()
	for i := range 300 {
		b.Set(keyOf(i), valueOf(i, 2000))
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, 300, 600, 2000)
	wantRows(t, d, 600, 2000)
	mustFlush(t, d, 1)
	mustClose(t, d)
	d = mustOpen(t, Config{Dir: "d", FS: mem})
	wantRows(t, d, 600, 2000)
	b = d.NewBatch()
	b.Set([]byte("k"), valueOf(1, maxValueBytes))
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := d.Get(nil, []byte("k")); !ok || err != nil || !bytes.Equal(v, valueOf(1, maxValueBytes)) {
		t.Error(len(v), ok, err)
	}
	mustClose(t, d)
}

func TestReopening(t *testing.T) {
	mem := vfs.NewMem()
	var id [16]byte
	for i := range 20 {
		d := mustOpen(t, Config{Dir: "d", FS: mem})
		if i > 0 && d.Identity() != id || d.Through() != uint64(i) {
			t.Fatalf("opening %d: identity %x, through %d", i, d.Identity(), d.Through())
		}
		id = d.Identity()
		wantRows(t, d, i*10, 50)
		mustPut(t, d, i*10, i*10+10, 50)
		mustFlush(t, d, uint64(i+1))
		mustPut(t, d, 900, 910, 50) // lost, for want of a Flush
		if d.Through() != uint64(i+1) {
			t.Error(d.Through())
		}
		mustClose(t, d)
	}
	names, err := mem.List("d")
	if err != nil || len(names) > 40 {
		t.Errorf("%d files after 20 openings (%v): %v", len(names), err, names)
	}
}

// TestOpenChangesNothing: until the first Commit or Flush a caller can refuse the rows.
func TestOpenChangesNothing(t *testing.T) {
	mem := vfs.NewMem()
	d := mustOpen(t, Config{Dir: "d", FS: mem})
	if got := fingerprint(t, mem, "d"); len(got) != 0 {
		t.Errorf("a new directory has %v", slices.Collect(maps.Keys(got)))
	}
	mustPut(t, d, 0, 10, 50)
	mustFlush(t, d, 3)
	mustClose(t, d)
	before := fingerprint(t, mem, "d")
	d = mustOpen(t, Config{Dir: "d", FS: mem})
	wantRows(t, d, 10, 50)
	b := d.NewBatch()
	b.Set([]byte("a"), nil)
	if err := d.Check(d.Identity(), 4, 9); err == nil {
		t.Error("not refused")
	}
	mustClose(t, d)
	if err := b.Commit(); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if got := fingerprint(t, mem, "d"); !maps.Equal(got, before) {
		t.Errorf("an opening changed the directory: %v", slices.Sorted(maps.Keys(got)))
	}
}

func TestCheck(t *testing.T) {
	d := mustOpen(t, Config{Memory: true})
	defer mustClose(t, d)
	mustFlush(t, d, 10)
	other := newIdentity()
	f := func(id [16]byte, mark, last uint64, want string) {
		t.Helper()
		err := d.Check(id, mark, last)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if wantDamage(t, want, err, "rows"); err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f(d.Identity(), 10, 10, "")
	f(d.Identity(), 5, 20, "")
	f([16]byte{}, 0, 10, "")
	f(other, 5, 20, "another journal")
	f(d.Identity(), 11, 20, "older than the journal")
	f(d.Identity(), 5, 9, "older than the rows")
	f([16]byte{}, 0, 0, "older than the rows")
}

func TestTwoOpeners(t *testing.T) {
	dir := t.TempDir()
	d := mustOpen(t, Config{Dir: dir})
	if err := os.Symlink(dir, dir+"-link"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir + "-link") })
	for _, name := range []string{dir, dir + "/.", dir + "-link"} {
		if _, err := Open(Config{Dir: name}); !errors.Is(err, errLocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustClose(t, d)
	mustClose(t, mustOpen(t, Config{Dir: dir + "-link"}))
}

func TestClosed(t *testing.T) {
	d := mustOpen(t, Config{Memory: true})
	mustPut(t, d, 0, 1, 8)
	mustClose(t, d)
	mustClose(t, d)
	_, _, get := d.Get(nil, keyOf(0))
	scan := d.Scan(nil, nil, false, func(_, _ []byte) bool { return true })
	b := d.NewBatch()
	b.Set(keyOf(0), nil)
	for _, err := range []error{get, scan, b.Commit(), d.Flush(1)} {
		if !errors.Is(err, errClosed) {
			t.Error(err)
		}
	}
	if d.Stats() != (Stats{}) {
		t.Error(d.Stats())
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := Open(Config{}); err == nil {
		t.Error("opened without a directory")
	}
}
