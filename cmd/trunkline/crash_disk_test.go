package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// diskTree returns the paths of a disk with their contents; directories end in a slash.
func diskTree(d *lossyDisk) map[string]string {
	out := make(map[string]string)
	var walk func(n *diskNode, at string)
	walk = func(n *diskNode, at string) {
		for name, below := range n.names {
			if below.isDir() {
				out[at+name+"/"] = ""
				walk(below, at+name+"/")
			} else {
				out[at+name] = string(below.data)
			}
		}
	}
	walk(d.nodes[rootID], "")
	return out
}

// runDisk does what each line names: "make a", "dir d", "write a text", "append a text", "cut a 3",
// "move a d/b", "remove a", "sync a", "lose".
func runDisk(t *testing.T, d *lossyDisk, lines string) {
	t.Helper()
	at := func(path string) (*diskNode, string) {
		dir, name := d.nodes[rootID], path
		for {
			first, rest, below := strings.Cut(name, "/")
			if !below {
				return dir, name
			}
			dir, name = dir.names[first], rest
		}
	}
	for line := range strings.SplitSeq(lines, "; ") {
		w := strings.Fields(line)
		var dir, n *diskNode
		var name string
		if len(w) > 1 {
			if dir, name = at(w[1]); dir != nil {
				n = dir.names[name]
			}
		}
		var err error
		switch w[0] {
		case "make", "dir":
			_, err = d.make(dir, name, 0o600, w[0] == "dir")
		case "write":
			err = n.write([]byte(w[2]), 0)
		case "append":
			err = n.write([]byte(w[2]), uint64(len(n.data)))
		case "cut":
			err = n.truncate(uint64(len(w[2])))
		case "move":
			to, newName := at(w[2])
			err = d.rename(dir, name, to, newName, false)
		case "remove":
			err = d.remove(dir, name, n.isDir())
		case "sync":
			d.sync(n)
		case "syncroot":
			d.sync(d.nodes[rootID])
		case "lose":
			d.lose(nil)
		default:
			t.Fatalf("cannot do %q", line)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// TestDiskDurability is the rules of the disk, each as a conversation with a disk.
func TestDiskDurability(t *testing.T) {
	f := func(lines, want string) {
		t.Helper()
		d := newLossyDisk()
		runDisk(t, d, lines)
		var got []string
		all := diskTree(d)
		for _, path := range slices.Sorted(maps.Keys(all)) {
			got = append(got, strings.TrimSuffix(path+"="+all[path], "="))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\nleaves %v, want %s", lines, got, want)
		}
	}
	f("make a; write a x", "a=x")
	f("make a; write a x; lose", "")
	f("make a; write a x; sync a; lose", "a=x")
	f("make a; write a x; syncroot; lose", "a")
	f("make a; sync a; write a x; lose", "a")
	f("make a; write a long; sync a; write a no; append a er; lose", "a=long")
	f("make a; write a long; sync a; cut a xx; lose", "a=long")
	f("make a; write a long; sync a; cut a xx; sync a; lose", "a=lo")
	f("make a; write a long; sync a; cut a xx; append a st; lose", "a=long")
	f("make a; write a x; sync a; move a b; lose", "a=x")
	f("make a; write a x; sync a; move a b; sync b; lose", "b=x")
	f("make a; write a x; sync a; make b; write b y; sync b; move b a; lose", "a=x b=y")
	f("make a; write a x; sync a; make b; write b y; sync b; move b a; syncroot; lose", "a=y")
	f("make a; sync a; remove a; lose", "a")
	f("make a; sync a; remove a; syncroot; lose", "")
	f("make a; sync a; remove a; make b; sync b; lose", "b")
	f("make a; make b; sync a; lose", "a")
	f("dir d; make d/a; write d/a x; sync d/a; lose", "d/ d/a=x")
	f("dir d; make d/a; sync d; lose", "d/ d/a")
	f("dir d; syncroot; make d/a; syncroot; lose", "d/")
	f("dir d; make a; sync a; move a d/b; lose", "a d/")
	f("dir d; make a; sync a; move a d/b; sync d; lose", "d/ d/b")
	f("dir d; make a; sync a; move a d/b; sync d; lose; make a; sync a; lose", "a d/ d/b")
}

// TestDiskRefusals: errors are those that servers know.
func TestDiskRefusals(t *testing.T) {
	d := newLossyDisk()
	runDisk(t, d, "dir d; make d/a; make b")
	root := d.nodes[rootID]
	dir, b := root.names["d"], root.names["b"]
	_, exists := d.make(root, "b", 0, false)
	_, stale := d.node(99)
	_, file := d.dir(b.id)
	for what, c := range map[string]struct{ got, want error }{
		"make what is there":      {exists, syscall.EEXIST},
		"a node of another life":  {stale, syscall.ESTALE},
		"a file as directory":     {file, syscall.ENOTDIR},
		"remove nothing":          {d.remove(root, "x", false), syscall.ENOENT},
		"remove a directory":      {d.remove(root, "d", false), syscall.EISDIR},
		"remove a full one":       {d.remove(root, "d", true), syscall.ENOTEMPTY},
		"rmdir a file":            {d.remove(root, "b", true), syscall.ENOTDIR},
		"move nothing":            {d.rename(root, "x", root, "y", false), syscall.ENOENT},
		"move without replacing":  {d.rename(root, "b", dir, "a", true), syscall.EEXIST},
		"a file over a directory": {d.rename(root, "b", root, "d", false), syscall.EISDIR},
		"a directory over a file": {d.rename(root, "d", root, "b", false), syscall.ENOTDIR},
		"link a directory":        {d.link(dir, root, "e"), syscall.EPERM},
		"too long":                {b.truncate(maxFile + 1), syscall.EFBIG},
		"write behind the limit":  {b.write([]byte("xx"), maxFile-1), syscall.EFBIG},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if err := b.write([]byte("x"), maxFile-1); err != nil {
		t.Errorf("up to the limit: %v", err)
	}
}

// modelFile is a file of the model: its content and what is durable of it.
type modelFile struct{ now, synced []byte }

// modelNames is one directory: each step of it gives names to files. The first durable steps are
// there after a power loss.
type modelNames struct {
	steps   []func(names map[string]*modelFile)
	linked  []*modelFile // by each step, nil for none
	durable int
}

func (m *modelNames) after(steps int) map[string]*modelFile {
	names := make(map[string]*modelFile)
	for _, step := range m.steps[:steps] {
		step(names)
	}
	return names
}

func (m *modelNames) do(linked *modelFile, step func(names map[string]*modelFile)) {
	m.steps, m.linked = append(m.steps, step), append(m.linked, linked)
}

// TestDiskAgainstModel: whatever happens to files of one directory, a disk shows what the model
// has, and after a power loss what the model allows.
func TestDiskAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, m := newLossyDisk(), &modelNames{}
		root := d.nodes[rootID]
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for range steps {
			names := m.after(len(m.steps))
			at := name.Draw(t, "name")
			f, n := names[at], root.names[at]
			if (f == nil) != (n == nil) {
				t.Fatalf("%s is there for one of disk and model", at)
			}
			switch op := rapid.IntRange(0, 6).Draw(t, "op"); {
			case f == nil:
				f = &modelFile{}
				if _, err := d.make(root, at, 0o600, false); err != nil {
					t.Fatal(err)
				}
				m.do(f, func(names map[string]*modelFile) { names[at] = f })
			case op == 0:
				if err := d.remove(root, at, false); err != nil {
					t.Fatal(err)
				}
				m.do(nil, func(names map[string]*modelFile) { delete(names, at) })
			case op == 1:
				to := name.Draw(t, "to")
				if err := d.rename(root, at, root, to, false); err != nil {
					t.Fatal(err)
				}
				if to != at {
					m.do(f, func(names map[string]*modelFile) { delete(names, at); names[to] = f })
				}
			case op == 2:
				d.sync(root)
				m.durable = len(m.steps)
			case op == 3:
				d.sync(n)
				f.synced = slices.Clone(f.now)
				for i, linked := range m.linked {
					if linked == f {
						m.durable = max(m.durable, i+1)
					}
				}
			case op == 4:
				size := rapid.IntRange(0, 3*pageBytes).Draw(t, "size")
				if err := n.truncate(uint64(size)); err != nil {
					t.Fatal(err)
				}
				f.now = append(slices.Clone(f.now[:min(size, len(f.now))]), make([]byte, max(0, size-len(f.now)))...)
			default:
				begin := rapid.IntRange(0, 3*pageBytes).Draw(t, "begin")
				b := bytes.Repeat([]byte{byte(rapid.IntRange(1, 255).Draw(t, "byte"))}, rapid.IntRange(1, 2*pageBytes).Draw(t, "bytes"))
				if err := n.write(b, uint64(begin)); err != nil {
					t.Fatal(err)
				}
				f.now = append(slices.Clone(f.now), make([]byte, max(0, begin+len(b)-len(f.now)))...)
				copy(f.now[begin:], b)
			}
			for at, f := range m.after(len(m.steps)) {
				if n := root.names[at]; n == nil || !bytes.Equal(n.data, f.now) {
					t.Fatalf("%s is not what was written", at)
				}
			}
		}
		if rapid.Bool().Draw(t, "all is lost") {
			d.lose(nil)
			checkLost(t, m, diskTree(d))
			return
		}
		d.lose(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		checkPartlyLost(t, m, diskTree(d))
	})
}

// checkLost compares a disk with exactly what is durable.
func checkLost(t *rapid.T, m *modelNames, got map[string]string) {
	want := make(map[string]string)
	for at, f := range m.after(m.durable) {
		want[at] = string(f.synced)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("what is left is not what was synced: %d and %d files", len(got), len(want))
	}
}

// checkPartlyLost checks that the names are those of a moment since the last sync, and that each
// sector is what was synced, or what was there at the end, or was never written.
func checkPartlyLost(t *rapid.T, m *modelNames, got map[string]string) {
	for steps := m.durable; ; steps++ {
		if steps > len(m.steps) {
			t.Fatalf("the names %v are of no moment", slices.Sorted(maps.Keys(got)))
		}
		names := m.after(steps)
		if !slices.Equal(slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(got))) {
			continue
		}
		wrong := ""
		for at, f := range names {
			if what := tornSector(f, []byte(got[at])); what != "" {
				wrong = fmt.Sprintf("%s: %s", at, what)
			}
		}
		if wrong == "" {
			return
		}
		if steps == len(m.steps) {
			t.Fatal(wrong)
		}
	}
}

// tornSector returns what of a content can be neither old nor new, "" for nothing.
func tornSector(f *modelFile, got []byte) string {
	if n := len(got); n > max(len(f.now), len(f.synced)) {
		return fmt.Sprintf("%d bytes", n)
	}
	sector := func(b []byte, i int) []byte {
		return append(slices.Clone(b[min(i, len(b)):min(i+sectorBytes, len(b))]), make([]byte, max(0, min(sectorBytes, i+sectorBytes-len(b))))...)
	}
	for i := 0; i < len(got); i += sectorBytes {
		g, now, synced := sector(got, i), sector(f.now, i), sector(f.synced, i)
		cut := len(got) - i // a file may end inside of a sector
		if cut > sectorBytes {
			cut = sectorBytes
		}
		if !bytes.Equal(g[:cut], now[:cut]) && !bytes.Equal(g[:cut], synced[:cut]) &&
			!mixedBytes(g[:cut], now[:cut], synced[:cut]) {
			return fmt.Sprintf("the sector at %d", i)
		}
	}
	return ""
}

// mixedBytes reports whether every byte is old or new: where a file ends inside of a sector, what
// is behind its old end is of another write.
func mixedBytes(got, now, synced []byte) bool {
	for i := range got {
		if got[i] != now[i] && got[i] != synced[i] {
			return false
		}
	}
	return true
}
