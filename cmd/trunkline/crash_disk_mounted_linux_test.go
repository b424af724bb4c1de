package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountDisk mounts a disk until unmount is called, or the test ends.
func mountDisk(t *testing.T, d *lossyDisk) (dir string, unmount func()) {
	t.Helper()
	dir = t.TempDir()
	off, err := d.mount(dir)
	if errors.Is(err, errNoFUSE) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	unmount = func() {
		if !ended {
			ended = true
			if err := off(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	return dir, unmount
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDiskMounted: programs use a disk through the system, and find what was durable in its next
// life.
func TestDiskMounted(t *testing.T) {
	d := newLossyDisk()
	dir, unmount := mountDisk(t, d)
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("x/y"), 0o700))
	big := strings.Repeat("0123456789", 50_000)
	must(t, os.WriteFile(at("x/y/synced"), []byte(big), 0o600))
	f, err := os.OpenFile(at("x/y/synced"), os.O_RDWR, 0)
	must(t, err)
	must(t, f.Sync())
	_, err = f.WriteAt([]byte("lost"), 4097)
	must(t, err)
	must(t, f.Close())

	s, err := os.OpenFile(at("by each write"), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_SYNC, 0o640)
	must(t, err)
	for range 3 {
		_, err = s.WriteString("line\n")
		must(t, err)
	}
	must(t, s.Truncate(5))
	must(t, unix.Flock(int(s.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	must(t, s.Close())
	must(t, os.WriteFile(at("not synced"), []byte("x"), 0o600))
	must(t, os.Link(at("not synced"), at("two names")))
	must(t, os.Rename(at("two names"), at("moved")))
	for i := range 300 { // more than one answer of the kernel holds
		must(t, os.WriteFile(at(fmt.Sprintf("%s-%03d", strings.Repeat("n", 100), i)), nil, 0o600))
	}
	list, err := os.ReadDir(dir)
	must(t, err)
	if len(list) != 304 {
		t.Errorf("%d names, want 304", len(list))
	}
	if info, err := os.Stat(at("moved")); err != nil || info.Size() != 1 || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Remove(at("x")); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("a directory that is not empty is removed: %v", err)
	}
	var space unix.Statfs_t
	must(t, unix.Statfs(dir, &space))
	if space.Bavail*uint64(space.Bsize) < 1<<30 {
		t.Errorf("%d blocks are free", space.Bavail)
	}
	if b, err := os.ReadFile(at("x/y/synced")); err != nil || string(b[4097:4101]) != "lost" || len(b) != len(big) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	unmount()

	d.lose(nil)
	dir, _ = mountDisk(t, d)
	if b, err := os.ReadFile(at("x/y/synced")); err != nil || string(b) != big {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if b, err := os.ReadFile(at("by each write")); err != nil || string(b) != "line\nline\nline\n" {
		t.Errorf("%q, %v", b, err)
	}
	list, err = os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"by each write", "x"}) {
		t.Errorf("what is left is %v", names)
	}
	must(t, os.RemoveAll(at("x")))
	root, err := os.Open(dir)
	must(t, err)
	must(t, root.Sync())
	must(t, root.Close())
	if _, err := os.Stat(at("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory is removed and there: %v", err)
	}
}

// TestDiskUnmountWaits: a disk whose last file is closed a second later is unmounted then.
func TestDiskUnmountWaits(t *testing.T) {
	dir, unmount := mountDisk(t, newLossyDisk())
	f, err := os.Create(filepath.Join(dir, "open"))
	must(t, err)
	time.AfterFunc(time.Second, func() { _ = f.Close() })
	unmount()
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the disk is unmounted while a file is open: %v", err)
	}
}
