package crash

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

func TestSyncing(t *testing.T) {
	dir := t.TempDir()
	var stop atomic.Bool
	ended := make(chan error)
	go func() { ended <- syncing(dir, &stop) }()
	for load.DirectoryBytes(dir) == 0 {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	stop.Store(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	if err := syncing(filepath.Join(dir, "none"), &stop); err == nil {
		t.Error("no error where there is no directory")
	}
}

// TestOccupyDisk: the busy files are gone when the disk is calm, and trouble with them is reported.
func TestOccupyDisk(t *testing.T) {
	g := testGame()
	g.temp = t.TempDir()
	g.occupyDisk()()
	want(t, g)
	if left, _ := os.ReadDir(g.temp); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	g.temp = filepath.Join(g.temp, "none")
	g.occupyDisk()()
	want(t, g, "cannot keep the disk busy", "cannot keep the disk busy")
}
