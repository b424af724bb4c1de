package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLoadKey makes a key that only its owner can read, and takes no other file for one.
func TestLoadKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made", "exacta.key")
	one, err := LoadKey(path)
	if err != nil || len(one) != 52 {
		t.Fatalf("%x %v", one, err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	if again, err := LoadKey(path); err != nil || !bytes.Equal(again, one) {
		t.Errorf("%x %v", again, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	pipe, garbage := filepath.Join(dir, "pipe"), filepath.Join(dir, "garbage")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for n, good := range map[int]bool{minKey - 1: false, minKey: true, maxKey: true, maxKey + 1: false} {
		if err := os.WriteFile(garbage, bytes.Repeat([]byte("x"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := LoadKey(garbage); (err == nil) != good || good && len(key) != n {
			t.Errorf("%d bytes: %d %v", n, len(key), err)
		}
	}
	for _, bad := range []string{path, pipe, dir, ""} {
		if key, err := LoadKey(bad); err == nil {
			t.Errorf("%s: %x", bad, key)
		}
	}
}

// TestProofs: what another installation wrote, or this one for another root or under another name,
// is not proven, and nothing is taken back by it.
func TestProofs(t *testing.T) {
	root, _ := scene(t)
	p := open(t, root, Options{})
	ok(t, p.SaveState(&State{State: "Idle"}))
	pt, f := perform(p, DiffSetPoint)
	ok(t, f)
	pt.Sealed = false
	d, err := pt.folder(true)
	if err != nil {
		t.Fatal(err)
	}
	ok(t, pt.save(d))
	d.close()
	ok(t, p.SavePlan(id1, []byte(`{"a":1}`)))
	p.Close()
	doc := []byte(`{"a":1}`)
	if !p.proves("one", p.sign("one", doc)) || p.proves("two", p.sign("one", doc)) || p.proves("one", doc) {
		t.Error("a proof is of a name")
	}
	other := filepath.Join(canonicalTemp(t), "copy")
	if err := os.CopyFS(other, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	stranger := Options{Key: bytes.Repeat([]byte{1}, minKey)}
	for at, o := range map[string]Options{root: stranger, other: {}} {
		p := open(t, at, o)
		before := snapshot(t, at)
		s, f := p.LoadState()
		ok(t, f)
		plan, f := p.LoadPlan(id1)
		ok(t, f)
		found, f := p.Recover()
		ok(t, f)
		if s.Proven || p.ProvesPlan(id1, plan) || len(found) != 1 || !found[0].Foreign || snapshot(t, at) != before {
			t.Fatalf("%v %s %v %s", s, plan, found, snapshot(t, at))
		}
		want(t, found[0].Fault, "ST-002")
		p.Close()
	}
}
