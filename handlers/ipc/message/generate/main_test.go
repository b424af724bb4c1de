package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedIsCurrent fails when a generated file differs from what make generate writes.
func TestGeneratedIsCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the method table describes (%v): run make generate", name, err)
		}
	}
}
