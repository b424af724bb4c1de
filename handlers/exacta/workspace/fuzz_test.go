package workspace

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/relpath"
)

// FuzzStored gives any text to the readers of .exacta, which a hostile project has written. What
// they accept stays within the root, and is written as it was read.
func FuzzStored(f *testing.F) {
	pt := &Point{ID: id1, Kind: DiffSetPoint, CreatedAt: now, Entries: []Entry{
		{Path: "a", Op: Modify, Mode: 0o644, Pre: Sum(nil), Post: Sum([]byte("x")), Blob: "1.bin", Order: 1},
		{Path: "d/e", Op: Create, Post: Sum(nil), CreatedDirs: []string{"d"}, Order: 2},
		{Path: "g", Op: Delete, Pre: Sum(nil), Blob: "3.bin", Order: 3},
	}}
	f.Add(pt.encode())
	f.Add((&State{State: "Idle", Execution: &Execution{ID: "x", InStep: 1}}).encode(nil))
	f.Add([]byte(`{"schema_version":1,"ai":{"provider":"builtin"},"limits":{"max_steps_per_plan":3},"file_rules":{"deny":["x"]}}`))
	f.Add([]byte(`{"a":[1,"\u00e9",{}],"A":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if pt, problem := parseManifest(nil, id1, text); problem == "" {
			for _, e := range pt.Entries {
				if !relpath.Valid(e.Path) || e.Blob != "" && filepath.Base(e.Blob) != e.Blob {
					t.Fatalf("%+v", e)
				}
				for _, d := range e.CreatedDirs {
					if !strings.HasPrefix(e.Path, d+"/") || !relpath.Valid(d) {
						t.Fatalf("%+v", e)
					}
				}
			}
			again, problem := parseManifest(nil, id1, pt.encode())
			if problem != "" || !bytes.Equal(again.encode(), pt.encode()) {
				t.Fatalf("%s: %s", problem, pt.encode())
			}
		}
		if s, problem := parseState(text); problem == "" {
			if again, problem := parseState(s.encode(nil)); problem != "" || !bytes.Equal(again.encode(nil), s.encode(nil)) {
				t.Fatalf("%s: %s", problem, s.encode(nil))
			}
		}
		var strict jsonx.Strict
		if !strict.Check(text, maxDepth).OK() {
			return
		}
		once := Canonical(nil, text)
		if !strict.Check(once, maxDepth).OK() || !bytes.Equal(Canonical(nil, once), once) {
			t.Fatalf("%q becomes %q", text, once)
		}
		if jsonx.ValueOf(text).Kind == jsonx.ObjectStart {
			c, fault := (&Project{}).parseConfig(text, once)
			if (c == nil) == (fault == nil) {
				t.Fatalf("%v %v", c, fault)
			}
		}
	})
}
