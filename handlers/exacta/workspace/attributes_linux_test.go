package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// owned makes a file of another owner, setuid and with an extended attribute, as far as this
// process may, and returns what it has.
func owned(t *testing.T, path string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("root alone may give a file to another owner, and this test runs as another user")
	}
	err := os.WriteFile(path, []byte("old"), 0o600)
	if err == nil {
		err = os.Chown(path, 1234, 2345)
	}
	if err == nil {
		err = unix.Chmod(path, 0o4755)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Setxattr(path, "user.note", []byte("kept"), 0) // not on every file system
	return attributesOf(t, path)
}

func attributesOf(t *testing.T, path string) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	note := make([]byte, 16)
	n, _ := unix.Getxattr(path, "user.note", note)
	return fmt.Sprintf("%d:%d %o %q", st.Uid, st.Gid, st.Mode&0o7777, note[:max(n, 0)])
}

// TestAttributesAreKept by a rewrite, and by the way back of a rewrite (exacta §4.17).
func TestAttributesAreKept(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	had := owned(t, one)
	owned(t, two)
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(Change{Path: "one", Op: Modify, Data: []byte("new"), Pre: Sum([]byte("old"))},
		Change{Path: "two", Op: Delete, Pre: Sum([]byte("old"))}))
	ok(t, pt.Commit(nil))
	if got := attributesOf(t, one); got != had || len(pt.Lost) != 0 {
		t.Errorf("%s, want %s; lost %v", got, had, pt.Lost)
	}
	ok(t, pt.Undo(0))
	if got := attributesOf(t, one); got != had {
		t.Errorf("undone: %s, want %s", got, had)
	}
	if got, want := attributesOf(t, two), strings.Replace(had, "4755", "755", 1); got != want { // no program gets rights
		t.Errorf("undone: %s, want %s", got, want)
	}
}

// TestOwnerThatIsNotPermitted: a file whose owner cannot be kept is not setuid, and is reported.
func TestOwnerThatIsNotPermitted(t *testing.T) {
	root := canonicalTemp(t)
	owned(t, filepath.Join(root, "one"))
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	done := make(chan error)
	go func() { // on a thread of its own, which ends
		runtime.LockOSThread()
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		err := unix.Capget(&head, &caps[0])
		if err == nil {
			caps[0].Effective &^= 1 << unix.CAP_CHOWN
			err = unix.Capset(&head, &caps[0])
		}
		if err == nil {
			if f := pt.Add(Change{Path: "one", Op: Modify, Data: []byte("new"), Pre: Sum([]byte("old"))}); f != nil {
				err = f
			} else if f := pt.Commit(nil); f != nil {
				err = f
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := attributesOf(t, filepath.Join(root, "one")); !strings.HasPrefix(got, "0:0 755 ") || len(pt.Lost) != 1 {
		t.Errorf("%s, lost %v", got, pt.Lost)
	}
}

// TestSavedInTheWindow: what an editor saves between the last look at a target and the change of
// its name is put back, and the change is refused.
func TestSavedInTheWindow(t *testing.T) {
	if err := exchange(open(t, canonicalTemp(t), Options{}).dir, "none", "neither"); err != unix.ENOENT {
		t.Skip("the file system does not exchange names: ", err)
	}
	for _, times := range []int{1, 2, 3} {
		root, _ := scene(t)
		const rel, name = "m.txt", "m.txt"
		saves := 0
		save := func(op, at string) error {
			first := op == "rename" && at == name
			if saves < times && (first || op == "open" && at == name+".tmp."+id1 && saves > 0) {
				saves++
				write(t, root, map[string]string{"saving": fmt.Sprintf("saved %d", saves)})
				return os.Rename(filepath.Join(root, "saving"), filepath.Join(root, rel))
			}
			return nil
		}
		p := open(t, root, Options{Before: save})
		pt, f := p.NewPoint(id1, DiffSetPoint, now)
		ok(t, f)
		ok(t, pt.Add(changes()...))
		f = pt.Commit(nil)
		last := saves
		saves = times
		_ = pt.Undo(0)
		b, err := os.ReadFile(filepath.Join(root, rel))
		if f == nil || f.Code != "VAL-005" || err != nil || string(b) != fmt.Sprintf("saved %d", last) ||
			strings.Contains(snapshot(t, root), ".tmp.") {
			t.Errorf("%s, %d saves: %v, %q %v\n%s", rel, last, f, b, err, snapshot(t, root))
		}
	}
}
