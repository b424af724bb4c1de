package clientcontext

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestContexts(t *testing.T) {
	s := open(t)
	one := Context{Addr: "127.0.0.1:1", Admin: "127.0.0.1:2", TLSCA: "/ca", TLSCert: "/c", TLSKey: "/k", ThreadsURL: "http://x", TokenFile: "/t", ExactaAddr: "unix:///e", ExactaTokenFile: "/et"}
	if names, err := s.Names(); err != nil || len(names) != 0 {
		t.Errorf("%v %v", names, err)
	}
	_, err := s.Get("one")
	check(t, err, ErrNotFound)
	check(t, s.Put("one", one, false), nil)
	check(t, s.Put("one", Context{}, false), ErrExists)
	check(t, s.Put("two", Context{Addr: "b"}, true), nil)
	if got, err := s.Get("one"); err != nil || got != one {
		t.Errorf("%+v %v", got, err)
	}
	check(t, s.Put("one", Context{Addr: "c"}, true), nil)
	if got, err := s.Get("one"); err != nil || got.Addr != "c" {
		t.Errorf("%+v %v", got, err)
	}
	if names, err := s.Names(); err != nil || !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("%v %v", names, err)
	}
	check(t, s.Remove("one"), nil)
	check(t, s.Remove("one"), ErrNotFound)
}

// TestOnlyTheUserReads: a context has the names of files with secrets.
func TestOnlyTheUserReads(t *testing.T) {
	s := open(t)
	check(t, s.Put("one", Context{Addr: "a"}, false), nil)
	check(t, s.Use("one"), nil)
	for path, want := range map[string]os.FileMode{
		s.dir: os.ModeDir | 0o700, filepath.Join(s.dir, "contexts"): os.ModeDir | 0o700,
		filepath.Join(s.dir, "contexts", "one.json"): 0o600, s.currentFile(): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(s.dir, "contexts", ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestNames(t *testing.T) {
	s := open(t)
	f := func(name string, want error) {
		t.Helper()
		check(t, s.Put(name, Context{Addr: "a"}, true), want)
		if _, err := s.Get(name); want != nil {
			check(t, err, want)
			check(t, s.Remove(name), want)
		}
	}
	f("a", nil)
	f("A9._-", nil)
	f(strings.Repeat("a", maxName), nil)
	f(strings.Repeat("a", maxName+1), ErrName)
	f("", ErrName)
	f(".a", ErrName)
	f("-a", ErrName)
	f("../a", ErrName)
	f("a/b", ErrName)
	f("a b", ErrName)
	f("ä", ErrName)
	f("a\n", ErrName)
}

func TestChoice(t *testing.T) {
	s := open(t)
	top := t.TempDir()
	below := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		check(t, s.Put(name, Context{Addr: name}, false), nil)
	}
	f := func(named, dir, name, by string) {
		t.Helper()
		if got, err := s.Choose(named, dir); err != nil || got.Name != name || got.By != by || got.Addr != name {
			t.Errorf("%+v %v, want %s by %s", got, err, name, by)
		}
	}
	f("", below, "", "")
	check(t, s.Use("nope"), ErrNotFound)
	check(t, s.Use("one"), nil)
	f("", below, "one", "current")
	check(t, s.UseIn(top, "nope"), ErrNotFound)
	check(t, s.UseIn(top, "two"), nil)
	f("", below, "two", "file "+filepath.Join(top, LocalFile))
	f("", filepath.Dir(top), "one", "current")
	f("", "", "one", "current")
	f("three", below, "three", "env "+Env)
	check(t, s.UseIn(below, "three"), nil)
	f("", below, "three", "file "+filepath.Join(below, LocalFile))
	_, err := s.Choose("nope", below)
	check(t, err, ErrNotFound)
	if !strings.Contains(err.Error(), "chosen by env "+Env) {
		t.Error(err)
	}
	check(t, s.Remove("three"), nil)
	_, err = s.Choose("", below)
	check(t, err, ErrNotFound)
	check(t, s.Remove("one"), nil) // the current one
	f("", filepath.Dir(top), "", "")
	check(t, s.Use("two"), nil)
	check(t, s.Use(""), nil)
	check(t, s.Use(""), nil)
	f("", filepath.Dir(top), "", "")
}

// TestAnotherUsersDirectories: a server's operator runs 'status' as its user, in a directory and
// with the home of another one.
func TestAnotherUsersDirectories(t *testing.T) {
	for _, err := range []error{
		&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, &os.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}, os.ErrNotExist,
	} {
		if !notThere(err) {
			t.Error(err)
		}
	}
	if notThere(nil) || notThere(errLong) || notThere(syscall.EIO) {
		t.Error("other errors are none of a missing file")
	}
	s, err := Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Choose("", "/dev/null/x"); err != nil || got != (Chosen{}) {
		t.Errorf("%+v %v", got, err)
	}
	if names, err := s.Names(); err != nil || len(names) != 0 {
		t.Errorf("%v %v", names, err)
	}
	if s.Put("a", Context{Addr: "a"}, false) == nil {
		t.Error("a context was stored below a file")
	}
}

func TestLimits(t *testing.T) {
	s := open(t)
	for i := range maxContexts {
		check(t, write(filepath.Join(s.dir, "contexts", fmt.Sprintf("c%d.json", i)), []byte("{}")), nil)
	}
	check(t, s.Put("more", Context{}, false), errFull)
	check(t, s.Put("c1", Context{Addr: "a"}, true), nil)
	check(t, s.Remove("c2"), nil)
	check(t, s.Put("more", Context{}, false), nil)
	long := func(n int) Context {
		c := Context{Addr: "a"}
		text := `{` + "\n" + `  "addr": "a"` + "\n}\n"
		c.Addr = strings.Repeat("a", n-len(text)+1)
		return c
	}
	check(t, s.Put("c1", long(maxFile), true), nil)
	if got, err := s.Get("c1"); err != nil || len(got.Addr) < maxFile-100 {
		t.Errorf("%d bytes, %v", len(got.Addr), err)
	}
	check(t, s.Put("c1", long(maxFile+1), true), errLong)
}

func TestFilesThatAreNone(t *testing.T) {
	s := open(t)
	for name, text := range map[string]string{"junk": "junk", "unknown": `{"adr":"x"}`, "long": `{"addr":"` + strings.Repeat("a", maxFile) + `"}`} {
		path := filepath.Join(s.dir, "contexts", name+".json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(name); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzContext: what is in a file is a context or an error.
func FuzzContext(f *testing.F) {
	f.Add(`{"addr":"127.0.0.1:1"}`, "name")
	f.Add(`{"addr":1}`, "../x")
	f.Add(`[]`, "")
	f.Fuzz(func(t *testing.T, text, name string) {
		s := open(t)
		path, err := s.file(name)
		if err != nil {
			return
		}
		if filepath.Dir(path) != filepath.Join(s.dir, "contexts") {
			t.Fatalf("%q is %s", name, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Get(name); err != nil && c != (Context{}) {
			t.Errorf("%+v with %v", c, err)
		}
	})
}
