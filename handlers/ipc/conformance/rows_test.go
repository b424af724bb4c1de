package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/handlers/ipc"
)

// TestEveryMethodHasItsTranscriptAndSection: the first line of a transcript names each method of
// the table, and a heading of its page does.
func TestEveryMethodHasItsTranscriptAndSection(t *testing.T) {
	var heads []string
	for _, pattern := range []string{"testdata/*.txt", "testdata/envelope/*.txt"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			head, _, _ := strings.Cut(read(t, name), "\n")
			heads = append(heads, head)
		}
	}
	pages := map[string]string{"engine": envelopePage, "orchestration": envelopePage}
	for _, m := range ipc.Methods() {
		name := regexp.MustCompile(`\b` + m.Service + `\.` + m.Name + `\b`)
		if !slices.ContainsFunc(heads, name.MatchString) {
			t.Errorf("no transcript in testdata has %s.%s in its first line", m.Service, m.Name)
		}
		page := pages[m.Service]
		if page == "" {
			page = "../../../docs/kernel-ipc.md"
		}
		heading := regexp.MustCompile(`(?m)^### .*\b` + m.Name + `\b`)
		if !heading.MatchString(read(t, page)) {
			t.Errorf("%s has no section %s", page, m.Name)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
