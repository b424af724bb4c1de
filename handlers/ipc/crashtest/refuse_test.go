package crashtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// TestOneServerPerDirectory: a second server is refused, by whatever name it calls the directory,
// and the first does not notice.
func TestOneServerPerDirectory(t *testing.T) {
	f := func(fs vfs.FS, dir string, other ...string) {
		t.Helper()
		s := mustBoot(t, fs, dir, journal.Always, options{})
		p := s.connect()
		furnish(t, p)
		for _, name := range append(other, dir) {
			for _, mode := range bothModes {
				if second, err := boot(fs, name, mode, options{}); !errors.Is(err, journal.ErrLocked) {
					t.Errorf("%s opened as %s in mode %s: %v", dir, name, mode, err)
					if err == nil {
						mustStop(t, second)
					}
				}
			}
		}
		p.must(t, "kernel", "RecordUsage", `{"pid":"p","llm_calls":1}`)
		digest := s.svc.Runtime().Store.Digest()
		mustStop(t, s)
		s = mustBoot(t, fs, dir, journal.Always, options{})
		defer mustStop(t, s)
		if got := s.svc.Runtime().Store.Digest(); got != digest {
			t.Errorf("digest %x, was %x", got, digest)
		}
	}
	dir := t.TempDir()
	f(nil, dir, dir+"/../"+dir[strings.LastIndex(dir, "/")+1:], dir+"/.")
	f(vfs.NewMem(), "d")
}

// TestModeIsFixed: what was written under one promise is not opened under another; the refusal
// names both and changes nothing.
func TestModeIsFixed(t *testing.T) {
	for i, made := range bothModes {
		asked := bothModes[1-i]
		fs := vfs.NewMem()
		s := mustBoot(t, fs, "d", made, options{})
		furnish(t, s.connect())
		digest := s.svc.Runtime().Store.Digest()
		mustStop(t, s)
		for range 2 {
			_, err := boot(fs, "d", asked, options{})
			var mismatch *journal.ErrModeMismatch
			if !errors.As(err, &mismatch) || mismatch.Made != made || mismatch.Asked != asked {
				t.Fatalf("made in mode %s, opened in mode %s: %v", made, asked, err)
			}
			for _, name := range []string{made.String(), asked.String()} {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name mode %s", err, name)
				}
			}
		}
		s = mustBoot(t, fs, "d", made, options{})
		if got := s.svc.Runtime().Store.Digest(); got != digest {
			t.Errorf("digest %x, was %x", got, digest)
		}
		mustStop(t, s)
	}
}
