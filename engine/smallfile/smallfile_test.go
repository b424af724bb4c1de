package smallfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(name, to string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	full := strings.Repeat("x", maxBytes)
	for _, tc := range []struct {
		path, want string
		err        error
	}{
		{file("text", "a\n"), "a\n", nil},
		{file("empty", ""), "", nil},
		{file("mark", "\uFEFFa"), "a", nil},
		{file("two marks", "\uFEFF\uFEFFa"), "\uFEFFa", nil},
		{link("link", "text"), "a\n", nil},
		{file("full", full), full, nil},
		{file("one more", full+"x"), "", errTooLarge},
		{dir, "", errNotRegular},
		{fifo, "", errNotRegular},
		{link("zero", "/dev/zero"), "", errNotRegular},
		{filepath.Join(dir, "none"), "", fs.ErrNotExist},
	} {
		got, err := Read(tc.path)
		var path *fs.PathError
		if string(got) != tc.want || !errors.Is(err, tc.err) || err != nil &&
			(!errors.As(err, &path) || path.Path != tc.path) {
			t.Errorf("%s: %d bytes, %v, want %d and %v", filepath.Base(tc.path), len(got), err, len(tc.want), tc.err)
		}
	}
}

func TestReadUpTo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadUpTo(name, 4); string(got) != "four" || err != nil {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	if got, err := ReadUpTo(name, 3); got != nil || !errors.Is(err, errTooLarge) {
		t.Errorf("beyond it: %q, %v", got, err)
	}
}
