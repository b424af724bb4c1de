package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryToolHasItsTranscriptAndRow: a transcript of the conformance package calls each tool of
// the table, the page lists it with its tier, and the pages give the number of tools. FuzzTools
// seeds every tool by itself.
func TestEveryToolHasItsTranscriptAndRow(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var transcripts strings.Builder
	names, _ := filepath.Glob("../conformance/testdata/*.txt")
	for _, name := range names {
		transcripts.WriteString(read(name))
	}
	page, listed := read("../../../docs/toolhost.md"), 0
	for _, b := range Builtins(newBench(t).env) {
		if !strings.Contains(transcripts.String(), b.AID) {
			t.Errorf("no transcript in handlers/toolhost/conformance/testdata calls %s", b.AID)
		}
		row := fmt.Sprintf("\n| `%s` | %d |", b.AID, b.Tier)
		if strings.Contains(page, row) == b.Hidden {
			t.Errorf("docs/toolhost.md: row %q exists: %v, want %v", row, b.Hidden, !b.Hidden)
		}
		if !b.Hidden {
			listed++
		}
	}
	if want := fmt.Sprintf("%d built-in tools", listed); !strings.Contains(read("../../../README.md"), want) {
		t.Errorf("README.md does not contain %q", want)
	}
}
