package pebbledir

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestUsage: blocks count, not lengths, at any depth, and a file of two names counts once.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	blocks := func(path string) uint64 {
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return uint64(st.Blocks) * 512
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	ahead := file("000001.log", []byte("x"))
	f, err := vfs.Default.OpenReadWrite(ahead, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Preallocate(0, 1<<20); err != nil {
		t.Logf("nothing is laid out ahead here: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	paths := []string{dir, ahead, filepath.Join(dir, "sub"), file("table", make([]byte, 10_000)),
		file("sub/000002.log", make([]byte, 5_000))}
	if err := os.Link(paths[3], filepath.Join(dir, "sub", "again")); err != nil {
		t.Fatal(err)
	}
	want := Used{LogBytes: blocks(ahead)}
	for _, path := range paths {
		want.Bytes += blocks(path)
	}
	var u Usage
	if got := u.Read(vfs.Default, dir); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := u.Read(vfs.Default, filepath.Join(dir, "nothing")); got != (Used{}) {
		t.Errorf("%+v for what is not there", got)
	}
}

// TestUsageInMemory: where files have no blocks, their lengths count.
func TestUsageInMemory(t *testing.T) {
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("d", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(fsys, "d", "1.log", "four"); err != nil {
		t.Fatal(err)
	}
	var u Usage
	if got := u.Read(fsys, "d"); got.LogBytes != 4 || got.Bytes < 4 {
		t.Errorf("%+v", got)
	}
}

// slowFS does not answer while it is held.
type slowFS struct {
	vfs.FS
	held  atomic.Bool
	free  chan struct{}
	stats atomic.Int64
}

func (s *slowFS) Stat(name string) (vfs.FileInfo, error) {
	if s.held.Load() {
		s.stats.Add(1)
		<-s.free
	}
	return s.FS.Stat(name)
}

// TestUsageOfASlowDisk: readings of a disk that does not answer give what was read before, and hold
// up one goroutine.
func TestUsageOfASlowDisk(t *testing.T) {
	fsys := &slowFS{FS: vfs.NewMem(), free: make(chan struct{})}
	if err := fsys.MkdirAll("d", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(fsys, "d", "1.log", "four"); err != nil {
		t.Fatal(err)
	}
	var u Usage
	before := u.Read(fsys, "d")
	fsys.held.Store(true)
	for range 3 {
		if got := u.Read(fsys, "d"); got != before {
			t.Errorf("%+v, want what was read before, %+v", got, before)
		}
	}
	if n := fsys.stats.Load(); n != 1 {
		t.Errorf("%d readings wait for the disk", n)
	}
	fsys.held.Store(false)
	if err := Replace(fsys.FS, "d", "2.log", "four"); err != nil {
		t.Fatal(err)
	}
	close(fsys.free)
	for u.Read(fsys, "d").LogBytes != 8 {
	}
}
