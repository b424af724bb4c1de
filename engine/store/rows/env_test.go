package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
)

func TestMain(m *testing.M) { kit.Leaks(m) }

func mustOpen(t testing.TB, cfg Config) *DB {
	t.Helper()
	d, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustClose(t testing.TB, d *DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustFlush(t testing.TB, d *DB, through uint64) {
	t.Helper()
	if err := d.Flush(through); err != nil {
		t.Fatal(err)
	}
}

// keyOf and valueOf make the row i of a test; the value shows its key and any changed byte.
func keyOf(i int) []byte { return fmt.Appendf(nil, "k%06d", i) }

func valueOf(i, n int) []byte {
	b := make([]byte, max(n, 8))
	x := uint64(i)*0x9e3779b97f4a7c15 | 1
	for j := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[j] = byte(x)
	}
	binary.BigEndian.PutUint64(b, uint64(i))
	return b
}

// mustPut puts the rows from, from+1 ... to-1, of n bytes each, in batches of 10.
func mustPut(t testing.TB, d *DB, from, to, n int) {
	t.Helper()
	b := d.NewBatch()
	for i := from; i < to; i++ {
		b.Set(keyOf(i), valueOf(i, n))
		if (i-from)%10 == 9 || i == to-1 {
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// contentOf returns all rows.
func contentOf(d *DB) (map[string]string, error) {
	m := map[string]string{}
	err := d.Scan(nil, nil, false, func(k, v []byte) bool { m[string(k)] = string(v); return true })
	return m, err
}

// wantRows checks that the rows from 0 to n-1 are there, each as it was put with that many bytes.
func wantRows(t testing.TB, d *DB, n, bytes int) {
	t.Helper()
	m, err := contentOf(d)
	if err != nil || len(m) != n {
		t.Fatalf("%d rows (%v), want %d", len(m), err, n)
	}
	for i := range n {
		if m[string(keyOf(i))] != string(valueOf(i, bytes)) {
			t.Fatalf("row %d is another", i)
		}
	}
}

// wantDamage checks that err is damage, of a file with that in its name.
func wantDamage(t testing.TB, what string, err error, where string) {
	t.Helper()
	var damage *journal.DamageError
	if !errors.As(err, &damage) || !strings.Contains(damage.Where, where) {
		t.Errorf("%s: %v, want damage of %q", what, err, where)
	}
}

// fingerprint returns the names and the contents of a directory, without LOCK.
func fingerprint(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	names, err := fs.List(dir)
	if err != nil {
		return m
	}
	for _, name := range names {
		if name != "LOCK" {
			m[name] = string(readAll(t, fs, fs.PathJoin(dir, name)))
		}
	}
	return m
}

func readAll(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if len(b) > 0 {
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func writeAll(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func cloneOf(t testing.TB, disk vfs.FS) *vfs.MemFS {
	t.Helper()
	after := vfs.NewMem()
	if ok, err := vfs.Clone(disk, after, "d", "d"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return after
}

// faulty gives an error at some of the operations that match: n of them after the first from, or
// all while n is negative.
type faulty struct {
	match func(errorfs.Op) bool
	err   error
	from  int64
	n     atomic.Int64
	seen  atomic.Int64
	given atomic.Int64
}

// String implements errorfs.Injector.
func (f *faulty) String() string { return "faulty" }

// MaybeError implements errorfs.Injector.
func (f *faulty) MaybeError(op errorfs.Op) error {
	if !f.match(op) || f.seen.Add(1) <= f.from {
		return nil
	}
	if n := f.n.Load(); n >= 0 && f.given.Load() >= n {
		return nil
	}
	f.given.Add(1)
	return &opError{op, f.err}
}

// opError is an error as the system gives it.
type opError struct {
	op  errorfs.Op
	err error
}

func (e *opError) Error() string { return fmt.Sprintf("%v %s: %v", e.op.Kind, e.op.Path, e.err) }
func (e *opError) Unwrap() error { return e.err }
