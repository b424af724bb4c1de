package exacta

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/relpath"
	"trunkline/handlers/exacta/workspace"
)

// maxKept bounds the content of files that a tree keeps, in bytes. What is beyond it is read again
// when it is needed again.
const maxKept = 16 << 20

// errStopped ends the search of files for a work that was aborted.
var errStopped = errors.New("cannot search file: the work was aborted")

// tree is a project as planners and rules see it. It is made for one work.
type tree struct {
	ws      *workspace.Project
	files   []string
	sizes   map[string]int64
	dirs    map[string]bool
	markers []string
	content map[string][]byte
	kept    int // bytes of content
	rules   *relpath.Rules
	stopped func() bool // the work was aborted
}

// newTree reads the index.
func newTree(ws *workspace.Project, rules *relpath.Rules, stopped func() bool) (*tree, *errcode.Fault) {
	index, err := ws.Index()
	if err != nil {
		return nil, err
	}
	t := &tree{ws: ws, rules: rules, stopped: stopped, markers: ws.Markers(), sizes: make(map[string]int64), dirs: make(map[string]bool), content: make(map[string][]byte)}
	for _, f := range index {
		t.files = append(t.files, f.Path)
		t.sizes[f.Path] = f.Size
		for dir := f.Path; ; {
			i := strings.LastIndexByte(dir, '/')
			if i < 0 || t.dirs[dir[:i]] {
				break
			}
			dir = dir[:i]
			t.dirs[dir] = true
		}
	}
	slices.Sort(t.files)
	return t, nil
}

// Files implements planner.Tree.
func (t *tree) Files() []string { return t.files }

// Exists implements planner.Tree.
func (t *tree) Exists(path string) bool {
	if _, ok := t.sizes[path]; ok || t.dirs[path] {
		return true
	}
	sum, err := t.ws.Hash(path)
	return sum != "" || err == nil && t.ws.IsDir(path) || err != nil && err.Code != "FS-001" && relpath.Valid(path) && t.present(path)
}

// present reports whether anything is at a path that cannot be read.
func (t *tree) present(path string) bool {
	_, err := os.Lstat(filepath.Join(t.ws.Root(), path))
	return err == nil
}

// Read implements planner.Tree.
func (t *tree) Read(path string) ([]byte, error) {
	if b, ok := t.content[path]; ok {
		return b, nil
	}
	b, _, err := t.ws.Read(path)
	if err != nil {
		return nil, err
	}
	if t.kept+len(b) <= maxKept {
		t.content[path] = b
		t.kept += len(b)
	}
	return b, nil
}

// Scan implements planner.Tree. It reads nothing more for a work that was aborted.
func (t *tree) Scan(path string) ([]byte, error) {
	if t.stopped() {
		return nil, errStopped
	}
	if t.sizes[path] > planner.MaxScan {
		return nil, errcode.New("RES-002", "too_large: "+path)
	}
	return t.Read(path)
}

// Markers implements planner.Tree.
func (t *tree) Markers() []string { return t.markers }

// Target implements plan.Tree.
func (t *tree) Target(path string) plan.Target {
	out := plan.Target{Denied: t.rules.Denied(path, false)}
	if out.Denied {
		return out
	}
	b, _, err := t.ws.Read(path)
	switch {
	case err == nil:
		out.Exists, out.Hash, out.Text = true, workspace.Sum(b), diff.Text(b) == nil
	case err.Code == "FS-001":
		out.Exists = t.ws.IsDir(path)
		out.Unsafe = t.ws.IsBehindFile(path)
	default:
		out.Unsafe = true
	}
	return out
}

// Defining implements plan.Tree.
func (t *tree) Defining(symbol string) []string { return planner.Defining(t, symbol) }

// rulesOf returns the protected places of a project (exacta §4.17).
func rulesOf(c *workspace.Config, markers []string) *relpath.Rules {
	dotnet := slices.Contains(markers, ".sln") || slices.Contains(markers, ".csproj")
	return relpath.NewRules(c.Deny, c.Allow, dotnet)
}

// toolOf returns the build tool of a project (exacta §4.13); empty if there is none.
func toolOf(c *workspace.Config, markers []string) string {
	if c.Tool != "auto" {
		return c.Tool
	}
	for _, m := range [...][2]string{{".sln", "dotnet"}, {".csproj", "dotnet"}, {"Cargo.toml", "cargo"}, {"go.mod", "go"}, {"package.json", "npm"}, {"Makefile", "make"}} {
		if slices.Contains(markers, m[0]) {
			return m[1]
		}
	}
	return ""
}
