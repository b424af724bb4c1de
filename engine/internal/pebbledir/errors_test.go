package pebbledir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestErrorsOfTheSystem: a missing file is content of its directory, and a full disk is known
// behind what pebble wraps around it.
func TestErrorsOfTheSystem(t *testing.T) {
	for _, c := range []struct {
		err          error
		system, full bool
	}{
		{syscall.ENOENT, false, false},
		{&fs.PathError{Err: syscall.EIO}, true, false},
		{fmt.Errorf("a: %w", syscall.ENOSPC), true, true},
		{syscall.EDQUOT, true, true},
		{errors.New("checksum mismatch"), false, false},
	} {
		if FromSystem(c.err) != c.system || IsFull(c.err) != c.full {
			t.Errorf("%v: from the system %v, full %v", c.err, FromSystem(c.err), IsFull(c.err))
		}
	}
}

// TestFatalKeepsTheError: pebble formats the errors of the disk into a text.
func TestFatalKeepsTheError(t *testing.T) {
	var got error
	l := Logger{Log: slog.New(slog.DiscardHandler), Fail: func(err error) { got = err }}
	l.Fatalf("cannot write %s: %v", "000001.log", fmt.Errorf("sync: %w", syscall.ENOSPC))
	if !IsFull(got) || got.Error() != "cannot write 000001.log: sync: no space left on device" {
		t.Error(got)
	}
	l.Fatalf("bad %d", 1)
	if got == nil || got.Error() != "bad 1" {
		t.Error(got)
	}
}

func TestNamesInTexts(t *testing.T) {
	for text, want := range map[string][2]string{
		"pebble: could not open /d/000004.sst: gone":      {"/d/000004.sst", ""},
		"MANIFEST-000001: bad record":                     {"MANIFEST-000001", ""},
		"file 000007 (type sstable) unknown to the store": {"", "000007.sst"},
		"nothing": {},
	} {
		if got := [2]string{FileIn(text), MissingTable(text)}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestLockAndForeign: a directory has one opener, and is empty beside its lock and half a stamp.
func TestLockAndForeign(t *testing.T) {
	dir := t.TempDir()
	lock, held, err := Lock(vfs.Default, dir)
	if err != nil || held {
		t.Fatal(held, err)
	}
	if _, held, err := Lock(vfs.Default, dir); err == nil || !held {
		t.Errorf("locked twice: %v %v", held, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "STAMP.new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := Foreign(vfs.Default, dir, "STAMP"); name != "" || err != nil {
		t.Error(name, err)
	}
	if err := errors.Join(lock.Close(), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if name, err := Foreign(vfs.Default, dir, "STAMP"); name != "notes" || err != nil {
		t.Error(name, err)
	}
	if _, held, err := Lock(vfs.Default, filepath.Join(dir, "missing")); err == nil || held || !strings.Contains(err.Error(), "no such file") {
		t.Error(held, err)
	}
}
