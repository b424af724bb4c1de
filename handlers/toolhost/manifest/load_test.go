package manifest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pack writes files into a new directory: name, content, name, content...
func pack(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func named(aid string) string { return strings.Replace(declared(``), "AID.T.v1", aid, 1) }

func aids(entries []Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.AID+" "+filepath.Base(e.Path))
	}
	return strings.Join(list, ", ")
}

// Load reads one plugin argument.
func Load(path string) ([]Entry, error) {
	entries, _, err := LoadAll([]string{path})
	return entries, err
}

func TestLoad(t *testing.T) {
	dir := pack(t, "b.json", named("AID.A.v1"), "a.json", named("AID.B.v1"), "notes.txt", "x", ".hidden.json", "x", "sub/c.json", named("AID.C.v1"),
		"d.json/inner.json", "x")
	f := func(want string, paths ...string) {
		t.Helper()
		entries, _, err := LoadAll(paths)
		if err != nil || aids(entries) != want {
			t.Errorf("%v: %s %v, want %s", paths, aids(entries), err, want)
		}
	}
	f("AID.B.v1 a.json, AID.A.v1 b.json", dir)
	f("AID.B.v1 a.json, AID.A.v1 b.json, AID.C.v1 c.json", dir+"/", filepath.Join(dir, "sub"))
	f("AID.C.v1 c.json", filepath.Join(dir, "sub", "c.json"))
	f("", t.TempDir())
	f("")

	for _, paths := range [][]string{{"builtin"}, {dir, "builtin"}} {
		if _, builtins, err := LoadAll(paths); err != nil || !builtins {
			t.Errorf("%v: built-ins %v, %v", paths, builtins, err)
		}
	}
	if entries, err := Load(builtinPlugin); err != nil || len(entries) != 0 {
		t.Errorf("builtin: %v %v", entries, err)
	}
}

func TestLoadResolvesPathsFromTheManifest(t *testing.T) {
	dir := pack(t, "p/m.json", run(`{"kind":"process","command":["./w"],"cwd":".."}`))
	t.Chdir(dir)
	entries, err := Load("p/m.json")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if e := entries[0]; e.Exec.Command[0] != filepath.Join(here, "p", "w") || e.Exec.Dir != here || e.Path != "p/m.json" {
		t.Errorf("%+v", e)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := pack(t, "lib.so", "", "lib.so.1.2", "", "lib.DLL", "", "lib.dylib", "", "tool.py", "", "bad.json", "{", "a.json", named("AID.A.v1"),
		"again/a.json", named("AID.A.v1"), "big.json", "{}"+strings.Repeat(" ", maxManifestBytes-1), "full.json", "{}"+strings.Repeat(" ", maxManifestBytes-2))
	t.Chdir(dir)
	f := func(want string, paths ...string) {
		t.Helper()
		entries, _, err := LoadAll(paths)
		if err == nil || err.Error() != want || entries != nil {
			t.Errorf("%v: %v, want %s", paths, err, want)
		}
	}
	f("plugin not found: no.json", "no.json")
	f("plugin not found: x.so", "x.so") // toolhost §8
	f("plugin not found: ", "")
	f("unsupported plugin: native shared object: lib.so", "lib.so")
	f("unsupported plugin: native shared object: lib.so.1.2", "lib.so.1.2")
	f("unsupported plugin: native shared object: lib.DLL", "lib.DLL")
	f("unsupported plugin: native shared object: ./lib.dylib", "a.json", "./lib.dylib")
	f("unsupported plugin: not a toolpack manifest: tool.py", "tool.py")
	f("invalid manifest: bad.json: invalid JSON: unexpected end of input at offset 1", "bad.json")
	f("invalid manifest: again/a.json: duplicate aid in registry: AID.A.v1", "a.json", "builtin", "again")
	f("invalid manifest: big.json: exceeds 4MB limit", "big.json")
	f("invalid manifest: full.json: toolpack_id: must be a string", "full.json")
	f("invalid manifest: a.json/x: cannot read: not a directory", "a.json/x")
}

// TestLoadDoesNotWait: a plugin that is no regular file is refused, also where reading it would
// wait for someone.
func TestLoadDoesNotWait(t *testing.T) {
	dir := pack(t, "plain", "x")
	t.Chdir(dir)
	if err := unix.Mkfifo("fifo.json", 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link.json": "fifo.json", "zero.json": "/dev/zero", "tty.json": "/dev/tty", "kmsg.json": "/proc/kmsg"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	f := func(path, want string) {
		t.Helper()
		done := make(chan error, 1)
		go func() {
			_, err := Load(path)
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.HasPrefix(err.Error(), "invalid manifest: "+path+": cannot read: "+want) {
				t.Errorf("%s: %v, want %s", path, err, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: waits", path)
		}
	}
	f("fifo.json", "not a regular file")
	f("link.json", "not a regular file")
	f("zero.json", "not a regular file")
	if _, err := os.Stat("/dev/tty"); err == nil {
		f("tty.json", "") // one who has no terminal cannot open it
	}
	if file, err := os.Open("/proc/kmsg"); err == nil {
		file.Close()
		f("kmsg.json", "")
	}
	_ = os.Remove("kmsg.json") // regular by its mode
	if entries, err := Load("."); err != nil || len(entries) != 0 {
		t.Errorf("a directory of such: %v %v", entries, err)
	}
}

func TestTooManyManifests(t *testing.T) {
	dir := t.TempDir()
	for i := range maxManifests + 1 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".json"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := inDirectory(dir); err == nil || err.Error() != "invalid manifest: "+dir+": too many manifests" {
		t.Errorf("one more than allowed: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "0.json")); err != nil {
		t.Fatal(err)
	}
	if list, err := inDirectory(dir); err != nil || len(list) != maxManifests {
		t.Errorf("%d files, %v", len(list), err)
	}
}
