package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// tree is the model of a project: the bytes of each file.
type tree map[string]string

// machine runs a project beside its model. undone is the tree to which each open point returns.
type machine struct {
	p      *Project
	root   string
	now    tree
	points []*Point
	before []tree // of the point with the same index
	n      int
	inject *injector
}

// TestAgainstAModel does random changes, faults, restarts and ways back beside a map.
func TestAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp("", "model")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		if root, err = filepath.EvalSymlinks(root); err != nil {
			rt.Fatal(err)
		}
		m := &machine{root: root, now: tree{}, inject: &injector{from: never}}
		m.reopen(rt)
		defer func() { m.p.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"change":  m.change,
			"user":    m.user,
			"back":    m.back,
			"restart": m.reopen,
			"":        m.compare,
		})
	})
}

func (m *machine) reopen(rt *rapid.T) {
	if m.p != nil {
		m.p.Close()
	}
	var f error
	p, fault := Open(m.root, Options{Before: m.inject.before, Lazy: true})
	if fault != nil {
		rt.Fatal(fault)
	}
	m.p = p
	if undone, fault := m.p.Recover(); fault != nil || len(undone) != 0 {
		rt.Fatal(undone, fault, f)
	}
	for i, pt := range m.points {
		if m.points[i], fault = m.p.LoadPoint(pt.ID); fault != nil {
			rt.Fatal(fault)
		}
	}
}

// path draws one of few paths, so that they meet.
func path(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "d/a", "d/e/a", "d/e/b", "f/g/h"}).Draw(rt, "path")
}

// change makes a point with a set of changes; some call may fail.
func (m *machine) change(rt *rapid.T) {
	after := maps.Clone(m.now)
	var set []Change
	for range rapid.IntRange(0, 4).Draw(rt, "changes") {
		rel := path(rt)
		if slices.ContainsFunc(set, func(c Change) bool { return c.Path == rel }) {
			continue
		}
		old, exists := m.now[rel]
		data := rapid.StringN(0, 8, -1).Draw(rt, "data")
		switch {
		case !exists:
			set = append(set, Change{Path: rel, Op: Create, Data: []byte(data)})
			after[rel] = data
		case rapid.Bool().Draw(rt, "delete"):
			set = append(set, Change{Path: rel, Op: Delete, Pre: Sum([]byte(old))})
			delete(after, rel)
		default:
			set = append(set, Change{Path: rel, Op: Modify, Data: []byte(data), Pre: Sum([]byte(old))})
			after[rel] = data
		}
	}
	m.n++
	if rapid.Bool().Draw(rt, "fails") {
		at := m.inject.n + rapid.IntRange(1, 60).Draw(rt, "at")
		m.inject.from, m.inject.to, m.inject.err = at, at, os.ErrPermission
	}
	pt, f := m.p.NewPoint("p"+strconv.Itoa(m.n), DiffSetPoint, now)
	if f == nil {
		f = pt.Add(set...)
	}
	if f == nil {
		f = pt.Commit(nil)
	}
	if f == nil {
		f = pt.Seal()
	}
	m.inject.from = never
	if f == nil {
		m.points, m.before = append(m.points, pt), append(m.before, m.now)
		m.now = after
		return
	}
	if pt != nil {
		if f := pt.Undo(0); f != nil {
			rt.Fatal(f)
		}
		if f := pt.Drop(); f != nil {
			rt.Fatal(f)
		}
	}
}

// user writes a file, as another program does.
func (m *machine) user(rt *rapid.T) {
	rel, data := path(rt), rapid.StringN(0, 8, -1).Draw(rt, "data")
	file := filepath.Join(m.root, rel)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		rt.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
		rt.Fatal(err)
	}
	m.now[rel] = data
}

// back undoes a point: by the rules of the contract, entry for entry.
func (m *machine) back(rt *rapid.T) {
	if len(m.points) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.points)-1).Draw(rt, "point")
	pt, before := m.points[i], m.before[i]
	conflicts := 0
	m.now = maps.Clone(m.now)
	for _, e := range pt.Entries {
		text, exists := m.now[e.Path]
		old, existed := before[e.Path]
		sum := ""
		if exists {
			sum = Sum([]byte(text))
		}
		switch {
		case sum == e.Pre:
		case sum != e.Post:
			conflicts++
		case existed:
			m.now[e.Path] = old
		default:
			delete(m.now, e.Path)
		}
	}
	f := pt.Undo(0)
	if conflicts == 0 && f != nil || conflicts > 0 && (f == nil || f.Code != "FS-006" || f.Values[0] != strconv.Itoa(conflicts)) {
		rt.Fatalf("%v, want %d conflicts", f, conflicts)
	}
	if len(pt.Entries) != conflicts || pt.Conflicts != conflicts {
		rt.Fatalf("%+v, want %d conflicts", pt, conflicts)
	}
	if conflicts == 0 {
		if f := pt.Drop(); f != nil {
			rt.Fatal(f)
		}
		m.points, m.before = slices.Delete(m.points, i, i+1), slices.Delete(m.before, i, i+1)
	}
}

// compare holds the disk against the model.
func (m *machine) compare(rt *rapid.T) {
	files, f := m.p.Index()
	if f != nil {
		rt.Fatal(f)
	}
	want := slices.Sorted(maps.Keys(m.now))
	got := make([]string, len(files))
	for i, file := range files {
		got[i] = file.Path
		if b, _, f := m.p.Read(file.Path); f != nil || string(b) != m.now[file.Path] || file.Size != int64(len(b)) {
			rt.Fatalf("%s: %q %v, want %q", file.Path, b, f, m.now[file.Path])
		}
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("files %q, want %q", got, want)
	}
}
