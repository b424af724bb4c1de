package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedIsCurrent fails when a generated file differs from what make generate writes.
func TestGeneratedIsCurrent(t *testing.T) {
	ipc := filepath.Join("..", "..")
	files, err := generate(ipc)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(ipc, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the method table and shapes.txt describe (%v): run make generate", name, err)
		}
	}
}
