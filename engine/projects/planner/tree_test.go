package planner

import (
	"errors"
	"maps"
	"slices"
)

// tree is a project in memory: contents by path. hidden files are there and not in the index.
type tree struct {
	files   map[string]string
	hidden  map[string]string
	markers []string
}

// demo is the tree of E14 (exacta §9).
func demo() *tree {
	return &tree{files: map[string]string{
		"go.mod": "module demo\n", "main.go": "package main\n\nvar foo = 1\n", "README.md": "# Demo\n\nHello.\n",
		"a.txt": "a\n", "b.txt": "b\n", "src/user.go": "package src\n\ntype UserService struct{}\n",
	}, markers: []string{"go.mod"}}
}

// with returns the tree with one file more.
func (t *tree) with(path, content string) *tree {
	files := maps.Clone(t.files)
	if files == nil {
		files = map[string]string{}
	}
	files[path] = content
	return &tree{files, t.hidden, t.markers}
}

func (t *tree) Files() []string { return slices.Sorted(maps.Keys(t.files)) }

func (t *tree) Exists(path string) bool {
	_, listed := t.files[path]
	_, hidden := t.hidden[path]
	return listed || hidden || newLexer(t).isDir(path)
}

func (t *tree) Read(path string) ([]byte, error) {
	for _, m := range []map[string]string{t.files, t.hidden} {
		if s, ok := m[path]; ok {
			return []byte(s), nil
		}
	}
	return nil, errors.New("cannot read " + path)
}

func (t *tree) Scan(path string) ([]byte, error) {
	b, err := t.Read(path)
	if len(b) > MaxScan {
		return nil, errors.New("too large: " + path)
	}
	return b, err
}

func (t *tree) Markers() []string { return t.markers }

// debug is the configuration of a Go project.
func debug() *Config { return &Config{Configuration: "Debug", Toolchain: "go", RootName: "demo"} }
