package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
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

// TestEveryMethodHasADestination: without one a method would be for partition 0, which is rarely
// right.
func TestEveryMethodHasADestination(t *testing.T) {
	for text, want := range map[string]string{
		"a.B -- Do.\n\tin x\n\tout raw\n\tto x\n":   "",
		"a.B -- Do.\n\tin x\n\tout raw\n":           "a.B has no line to",
		"a.B -- Do.\n\tin x\n\tout raw\n\tto y\n":   "a.B goes to y, which is no field of it",
		"a.B -- Do.\n\tin x\n\tout raw\n\tto any\n": "",
	} {
		switch _, err := parseTable(text); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```text\nkernel.Ping")
	example, _, _ = strings.Cut(example, "```")
	if _, err := parseTable("kernel.Ping" + example); example == "" || err != nil {
		t.Errorf("the example of CONTRIBUTING.md: %v", err)
	}
}
