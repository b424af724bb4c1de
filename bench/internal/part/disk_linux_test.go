package part

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMountOf(t *testing.T) {
	const info = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:1 / /tmp rw shared:1 - tmpfs tmpfs rw\n" +
		"3 1 8:2 / /data rw - xfs /dev/b rw\n4 1 8:3 / /data rw - btrfs /dev/c rw\nnonsense\n"
	f := func(path, want string) {
		t.Helper()
		if got := mountOf([]byte(info), path); got != want {
			t.Errorf("%s is on %s, want %s", path, got, want)
		}
	}
	f("/", "ext4 on /dev/a")
	f("/tmpx/y", "ext4 on /dev/a")
	f("/tmp", "tmpfs on tmpfs")
	f("/tmp/x", "tmpfs on tmpfs")
	f("/data/x", "btrfs on /dev/c")
	if got := mountOf(nil, "/"); got != "unknown" {
		t.Errorf("without mounts: %s", got)
	}
	if got := filesystem(t.TempDir()); !strings.Contains(got, " on ") {
		t.Errorf("the temporary folder is on %q", got)
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
