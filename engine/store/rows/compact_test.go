package rows

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCompact: no file has what was replaced or removed in the range before a Compact.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	d := mustOpen(t, Config{Dir: dir})
	defer func() { mustClose(t, d) }()
	text := []byte("5ecretText")
	files := func() (n int) {
		names, err := filepath.Glob(dir + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, text) {
				n++
			}
		}
		return n
	}
	put := func(k, v []byte) {
		t.Helper()
		b := d.NewBatch()
		if b.Set(k, v); v == nil {
			b = d.NewBatch()
			b.Delete(k)
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, d, 0, 100, 1000)
	for _, i := range []int{7, 8} {
		put(keyOf(i), text)
	}
	mustFlush(t, d, 1)
	if files() == 0 {
		t.Fatal("it tests nothing")
	}
	put(keyOf(7), []byte("other"))
	put(keyOf(8), nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Compact(ended, keyOf(0), keyOf(9)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := d.Compact(t.Context(), keyOf(0), keyOf(9)); err != nil || files() > 0 {
		t.Errorf("%v, %d files", err, files())
	}
	if v, ok, err := d.Get(nil, keyOf(7)); err != nil || !ok || string(v) != "other" {
		t.Errorf("%q %v %v", v, ok, err)
	}
	if _, ok, err := d.Get(nil, keyOf(8)); err != nil || ok {
		t.Error(ok, err)
	}
	mustClose(t, d)
	if err := d.Compact(t.Context(), keyOf(0), keyOf(9)); err == nil {
		t.Error("compacted after Close")
	}
	d = mustOpen(t, Config{Dir: dir})
	if n := 0; d.Scan(nil, nil, false, func(_, _ []byte) bool { n++; return true }) != nil || n != 99 {
		t.Errorf("%d rows, want 99", n)
	}
}
