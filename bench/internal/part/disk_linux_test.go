package part

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesystemIsNamed(t *testing.T) {
	if got := filesystem(t.TempDir()); !strings.Contains(got, " on ") {
		t.Errorf("the temporary folder is on %q", got)
	}
	t.Setenv("PATH", t.TempDir())
	if got := filesystem("/"); got != "unknown" {
		t.Errorf("without its program: %s", got)
	}
}

func TestMemoryIsNoDisk(t *testing.T) {
	if _, err := onDisk(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was taken")
	}
	const shared = "/dev/shm"
	if !strings.HasPrefix(filesystem(shared), "tmpfs") {
		t.Skip("no tmpfs here")
	}
	if dir, err := onDisk(shared); err == nil || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("%q, %v", dir, err)
	}
}

// TestRedis: what is not asked for, and what auto does not find, is a note; a path has to be one.
func TestRedis(t *testing.T) {
	f := func(redis string, notes int, fails bool) {
		t.Helper()
		r := &Run{Options: Options{Redis: redis}, Report: new(Report)}
		s, err := r.StartRedis("redis")
		if s != nil || (err != nil) != fails || len(r.Report.Notes) != notes {
			t.Errorf("%s: %v, %v, %q", redis, s, err, r.Report.Notes)
		}
	}
	t.Setenv("PATH", t.TempDir())
	f("off", 1, false)
	f("auto", 1, false)
	f(filepath.Join(os.TempDir(), "nosuch", "redis-server"), 0, true)
}
