package pebbledir

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestPowerLoss: directories and files are there after a power loss, and a file is never half.
func TestPowerLoss(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	if err := Make(fsys, "/a/b/c"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "a longer one"} {
		if err := Replace(fsys, "/a/b/c", "F", text); err != nil {
			t.Fatal(err)
		}
		crashed := fsys.CrashClone(vfs.CrashCloneCfg{})
		for most, want := range map[int64]string{3: text[:3], 100: text} {
			if got, err := Read(crashed, "/a/b/c/F", most); err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
	}
	if err := Make(fsys, "/a/b/c"); err != nil {
		t.Error(err)
	}
	if _, err := Read(fsys, "/a/b/c/G", 9); err == nil {
		t.Error("a file that is not there was read")
	}
}
