package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module is the module path; ours is what every import of our own starts with.
const (
	module = "trunkline"
	ours   = module + "/"
)

// goFile is one parsed source file. dir is the package's folder relative to the repository, with
// slashes.
type goFile struct {
	path, dir string
	src       string
	test      bool
	generated bool
	ast       *ast.File
}

// repo is the whole repository, parsed once for all rules.
type repo struct {
	root  string
	fset  *token.FileSet
	files []goFile
	texts map[string]string // every file that people write, Go or not, by path
}

var loadOnce = sync.OnceValues(load)

func repository(t *testing.T) *repo {
	t.Helper()
	skipWhenShort(t)
	r, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// skipWhenShort keeps make check, which runs make lint first, from loading everything twice.
func skipWhenShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make check runs make lint as well, which is not short")
	}
}

// at returns file:line for a finding.
func (r *repo) at(f goFile, n ast.Node) string {
	p := r.fset.Position(n.Pos())
	return f.path + ":" + itoa(p.Line)
}

// lines returns how many lines a node spans.
func (r *repo) lines(n ast.Node) int {
	return r.fset.Position(n.End()).Line - r.fset.Position(n.Pos()).Line + 1
}

func load() (*repo, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	r := &repo{root: root, fset: token.NewFileSet(), texts: make(map[string]string)}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if skipDir(root, rel, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		return r.add(p, rel, d)
	})
	return r, err
}

// add reads one file, and parses it if it is Go.
func (r *repo) add(p, rel string, d fs.DirEntry) error {
	if !d.Type().IsRegular() || !isText(rel) {
		return nil
	}
	b, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	r.texts[rel] = string(b)
	if !strings.HasSuffix(rel, ".go") {
		return nil
	}
	f, err := parser.ParseFile(r.fset, rel, b, parser.ParseComments)
	if err != nil {
		return err
	}
	r.files = append(r.files, goFile{
		path: rel, dir: path.Dir(rel), src: string(b), ast: f,
		test:      strings.HasSuffix(rel, "_test.go"),
		generated: ast.IsGenerated(f),
	})
	return nil
}

// skipDir leaves out what git ignores, what the go tool ignores, and nested modules: they have
// rules of their own.
func skipDir(root, rel, name string) bool {
	switch {
	case rel == ".":
		return false
	case rel == ".ci":
		return false
	case strings.HasPrefix(name, ".") || name == "bin" || name == "dist" || name == "trunkline-data":
		return true
	}
	_, err := os.Stat(filepath.Join(root, rel, "go.mod"))
	return err == nil
}

// isText picks the files that people write: by extension, or without one (Makefile, .ci/run). Fuzz
// corpora are found bytes.
func isText(rel string) bool {
	if strings.Contains(rel, "testdata/fuzz/") {
		return false
	}
	switch path.Ext(rel) {
	case ".go", ".md", ".txt", ".yaml", ".yml", ".sh", ".mod", ".mk", ".toml":
		return true
	}
	return !strings.Contains(path.Base(rel), ".") && path.Base(rel) != "LICENSE"
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), "module "+module+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", os.ErrNotExist
		}
		dir = up
	}
}

// under reports whether dir is the room or inside it.
func under(dir, room string) bool {
	return dir == room || strings.HasPrefix(dir, room+"/")
}

func anyUnder(dir string, rooms []string) bool {
	for _, room := range rooms {
		if under(dir, room) {
			return true
		}
	}
	return false
}
