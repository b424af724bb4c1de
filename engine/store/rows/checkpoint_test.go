package rows

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestCheckpoint: it holds what was flushed, with its mark and the identity, and is not changed by
// what comes later.
func TestCheckpoint(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	d := mustOpen(t, Config{Dir: dir})
	mustPut(t, d, 0, 40, 500)
	mustFlush(t, d, 7)
	if err := d.Checkpoint(to); err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, 40, 60, 500)
	mustFlush(t, d, 9)
	id := d.Identity()
	if err := d.Checkpoint(to); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a directory: %v", err)
	}
	mustClose(t, d)
	c := mustOpen(t, Config{Dir: to})
	if err := c.Check(id, 7, 7); err != nil || c.Through() != 7 {
		t.Errorf("%v, up to %d", err, c.Through())
	}
	wantRows(t, c, 40, 500)
	mustClose(t, c)
}

// TestCheckpointOfNothing: rows that were never put have a checkpoint too.
func TestCheckpointOfNothing(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	d := mustOpen(t, Config{Dir: t.TempDir()})
	if err := d.Checkpoint(to); err != nil {
		t.Fatal(err)
	}
	c := mustOpen(t, Config{Dir: to})
	if c.Identity() != d.Identity() {
		t.Error("another identity")
	}
	wantRows(t, c, 0, 0)
	mustClose(t, c)
	mustClose(t, d)
}

// TestAFailedCheckpointIsNotFinal: a disk that is full for the copy is not a disk that lost rows.
func TestAFailedCheckpointIsNotFinal(t *testing.T) {
	broken, armed := errors.New("broken"), false
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, "a/copy") {
			return broken
		}
		return nil
	}))
	d := mustOpen(t, Config{Dir: "a/d", FS: fs, OnFatal: func(err error) { t.Error(err) }})
	mustPut(t, d, 0, 40, 500)
	mustFlush(t, d, 7)
	armed = true
	if err := d.Checkpoint("a/copy"); !errors.Is(err, broken) {
		t.Errorf("a disk that fails: %v", err)
	}
	mustPut(t, d, 40, 60, 500)
	mustFlush(t, d, 8)
	wantRows(t, d, 60, 500)
	armed = false
	if err := d.Checkpoint("a/copy"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	mustClose(t, d)
}

// TestIdentityIsGiven: rows that are put into a new directory as they were keep what they are.
func TestIdentityIsGiven(t *testing.T) {
	dir, id := t.TempDir(), [16]byte{1, 2, 3}
	d := mustOpen(t, Config{Dir: dir, Identity: id})
	mustPut(t, d, 0, 10, 10)
	mustFlush(t, d, 3)
	mustClose(t, d)
	d = mustOpen(t, Config{Dir: dir, Identity: [16]byte{9}}) // a directory that is there keeps its own
	if err := d.Check(id, 3, 3); err != nil || d.Identity() != id {
		t.Error(err, d.Identity())
	}
	mustClose(t, d)
}
