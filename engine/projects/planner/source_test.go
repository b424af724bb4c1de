package planner

import (
	"encoding/json"
	"go/format"
	"path"
	"testing"
)

// TestSourcesAreWellFormed: what the planner writes by itself is formatted Go and valid JSON.
func TestSourcesAreWellFormed(t *testing.T) {
	for _, in := range []string{
		"create a go app", "create a node app", "create x.go", "create a/b/x.go", "create x.json", "add a dark mode",
		"add a 3d view", "add a switch",
	} {
		_, list := steps(t, in, &tree{}, &Config{Toolchain: "go", RootName: "demo"})
		for _, s := range list {
			switch path.Ext(s.Target) {
			case ".go":
				if out, err := format.Source(s.New); err != nil || string(out) != string(s.New) {
					t.Errorf("%s: %v\n%s", s.Target, err, s.New)
				}
			case ".json":
				if !json.Valid(s.New) {
					t.Errorf("%s:\n%s", s.Target, s.New)
				}
			}
		}
	}
}
