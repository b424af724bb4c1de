package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNewNamesReplaceNothing holds both ways of renaming to a new name to one rule.
func TestNewNamesReplaceNothing(t *testing.T) {
	for _, rename := range []func(d dir, from, to string) error{renameNoReplace, linkThenUnlink} {
		root, _ := hostile(t)
		p := open(t, root, Options{})
		write(t, root, map[string]string{"from": "x"})
		before := snapshot(t, root)
		for _, to := range []string{"real.txt", "d", "near.txt", "dangling.txt", "pipe", "zero"} {
			if err := rename(p.dir, "from", to); err != unix.EEXIST || snapshot(t, root) != before {
				t.Errorf("to %s: %v, tree %q", to, err, snapshot(t, root))
			}
		}
		if err := rename(p.dir, "from", "to"); err != nil {
			t.Fatal(err)
		}
		_, err := os.Lstat(filepath.Join(root, "from"))
		if b, e := os.ReadFile(filepath.Join(root, "to")); !errors.Is(err, os.ErrNotExist) || e != nil || string(b) != "x" {
			t.Errorf("%v %v %q", err, e, b)
		}
	}
}

// TestFaultsOfErrors has the rows of exacta §3.7 that errors of the disk have.
func TestFaultsOfErrors(t *testing.T) {
	f := func(err error, code string) {
		t.Helper()
		wrapped := &os.PathError{Op: "open", Path: "/abs/olute", Err: err}
		got := faultOf(wrapped, "rel")
		if got.Code != code || got.Row() == nil || got.Detail == "" || got.Error() != faultOf(err, "rel").Error() {
			t.Errorf("%v: %v, want %s", err, got, code)
		}
	}
	f(unix.ENOSPC, "FS-004")
	f(unix.EDQUOT, "FS-004")
	f(unix.EACCES, "FS-002")
	f(unix.EPERM, "FS-002")
	f(unix.EROFS, "FS-002")
	f(unix.EIO, "FS-002")
	f(unix.ENOENT, "FS-001")
	f(unix.ENOTDIR, "FS-001")
	f(unix.ENAMETOOLONG, "FS-001")
	f(os.ErrNotExist, "FS-001")
	f(unix.ELOOP, "SEC-002")
	f(unix.EWOULDBLOCK, "FS-005")
	f(unix.ETXTBSY, "FS-005")
	f(unix.EEXIST, "VAL-005")
	f(unix.EMFILE, "RES-004")
	f(isSymlink, "SEC-002")
	f(isNotRegular, "SEC-002")
	f(isNotDir, "FS-001")
	f(isTooLarge, "RES-002")
	f(isChanged, "VAL-005")
	f(isMisread, "FS-002")
	f(errors.New("x"), "FS-002")
	f(damaged("x"), "ST-002")
	if faultOf(nil, "rel") != nil || isSymlink.Error() != "symlink" {
		t.Error("no error is a fault")
	}
}
