package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestANodeWithoutRoom shows why it keeps no journal any more, while the others go on.
func TestANodeWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	switch err := syscall.Mount("none", dir, "tmpfs", 0, "size=64m"); {
	case errors.Is(err, syscall.EPERM):
		t.Skip("it mounts a tmpfs of its own, which takes the right to mount")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	r := newRig(t, nil)
	r.dirs["a"] = filepath.Join(dir, "a")
	r.start("a", "b", "c")
	r.join("a", "b", "c")
	create(t, r.open["b"])
	publish(t, r.open["b"], "one")
	fill, err := os.Create(filepath.Join(dir, "fill"))
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = fill.Write(chunk)
	}
	if fill == nil || fill.Close() != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 16<<10)
	until(t, "a node that has no room", func() (Health, bool) {
		publish(t, r.open["b"], text) // which is its id too
		text += "x"
		h := r.open["a"].Health(t.Context())
		return h, !h.Connected
	})
	if h := r.open["a"].Health(t.Context()); !strings.Contains(h.Problem, "the disk has no room: JetStream out of") {
		t.Errorf("the problem is %q", h.Problem)
	}
	publish(t, r.open["b"], "two")
}
