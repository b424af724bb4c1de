package pebbledir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDisk: a file is for its owner before it has a name that others can open, and one that is made
// in the place of another leaves the links of that.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	mode := func(name string) os.FileMode {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for range 2 { // the second time it is there
		if err := occupy(one); err != nil || mode(one) != 0o600 {
			t.Fatalf("%v, %o", err, mode(one))
		}
		if err := os.WriteFile(one, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Disk.Link(one, two); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(one, 0o644); err != nil { // as an earlier version has made it
		t.Fatal(err)
	}
	made := func(f vfs.File, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil || mode(one) != 0o600 {
			t.Errorf("%v, %o", err, mode(one))
		}
	}
	made(Disk.OpenReadWrite(one, vfs.WriteCategoryUnspecified))
	made(Disk.Create(one, vfs.WriteCategoryUnspecified))
	if text, err := os.ReadFile(two); err != nil || string(text) != "before" {
		t.Errorf("%q, %v", text, err)
	}
	lock, err := Disk.Lock(filepath.Join(dir, "lock"))
	if err != nil || mode(filepath.Join(dir, "lock")) != 0o600 {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if err := occupy(filepath.Join(dir, "none", "file")); err == nil {
		t.Error("a file in no directory")
	}
}
