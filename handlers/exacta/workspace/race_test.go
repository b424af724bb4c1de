package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/fuzz/rounds"
)

// TestLinksAreSwappedInWhileWriting swaps directories and targets for links to the outside, hard
// links, pipes and sockets while files are written, deleted, undone and read. Nothing outside
// changes, nothing outside is read through a symbolic link, and no pipe makes a read wait.
func TestLinksAreSwappedInWhileWriting(t *testing.T) {
	t.Parallel()
	root, outside := canonicalTemp(t), canonicalTemp(t)
	write(t, outside, map[string]string{"a.txt": "outside", "sub/a.txt": "outside", "hard.txt": "a hard link may be read"})
	want := snapshot(t, outside)
	write(t, root, map[string]string{"d/sub/a.txt": "inside"})
	p := open(t, root, Options{})
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swap := func(path string, put func(path string) error) {
		aside := path + ".aside"
		if os.Rename(path, aside) != nil {
			return
		}
		if put(path) == nil {
			runtime.Gosched()
			_ = os.Remove(path)
		}
		if os.Rename(aside, path) != nil {
			_ = os.RemoveAll(aside)
		}
	}
	linkTo := func(to string) func(string) error { return func(path string) error { return os.Symlink(to, path) } }
	pipe := func(path string) error { return unix.Mkfifo(path, 0o644) }
	socket := func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) }
	file := filepath.Join(root, "d/sub/a.txt")
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				swap(filepath.Join(root, "d"), linkTo(outside))
				swap(filepath.Join(root, "d/sub"), linkTo(filepath.Join(outside, "sub")))
				swap(file, linkTo(filepath.Join(outside, "a.txt")))
				swap(file, func(path string) error { return os.Link(filepath.Join(outside, "hard.txt"), path) })
				swap(file, linkTo("/dev/zero"))
				swap(file, pipe)
				swap(file, socket)
				swap(filepath.Join(root, "d/sub"), pipe)
			}
		}
	})
	races := rounds.Of(60, 300)
	if rounds.Long() {
		races = 10_000 // each with several swaps
	}
	ids := []string{"p0", "p1", "p2"}
	for n := range races {
		if b, _, f := p.Read("d/sub/a.txt"); f == nil && string(b) == "outside" {
			t.Fatal("read what is outside")
		}
		sum, f := p.Hash("d/sub/a.txt")
		if f == nil && sum == Sum([]byte("outside")) {
			t.Fatal("hashed what is outside")
		}
		pt, f := p.NewPoint(ids[n%len(ids)], DiffSetPoint, now)
		ok(t, f)
		c := Change{Path: "d/sub/a.txt", Op: Modify, Data: []byte("inside"), Pre: sum}
		switch {
		case n%3 == 1:
			c.Op, c.Data = Delete, nil
		case sum == "":
			c.Op = Create
		}
		if pt.Add(c) == nil {
			_ = pt.Commit(nil)
		}
		_ = pt.Undo(0)
		ok(t, pt.Drop())
		if n%50 == 0 {
			if _, f := p.Index(); f != nil {
				t.Fatal(f)
			}
		}
	}
	close(stop)
	swaps.Wait()
	if got := snapshot(t, outside); got != want {
		t.Errorf("outside: %q", got)
	}
}
