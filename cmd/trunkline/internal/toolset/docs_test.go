package toolset

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const top = "../../../.."

var (
	quotedName = regexp.MustCompile(`"(MACHINA_[A-Z0-9_]*[A-Z0-9])"`)
	policyName = regexp.MustCompile(`env\.(?:text|list|number|amount)\("([A-Z0-9_]+)"`)
	codeName   = regexp.MustCompile("`(MACHINA_[A-Z0-9_]+)`")
	flagName   = regexp.MustCompile(`fs\.[A-Za-z]*Var\(&f\.[a-z]+, "([a-z-]+)"`)
	codeFlag   = regexp.MustCompile("`--([a-z-]+)[ `]")
)

// namesIn returns what a pattern finds in a text, each with prefix in front of it.
func namesIn(found map[string]bool, pattern *regexp.Regexp, prefix, text string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found[prefix+m[1]] = true
	}
}

// rows returns the lines of a page's section that are rows of its tables, by their first cell.
func rows(t *testing.T, page, section string) (first []string, all map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %s", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	all = make(map[string]string)
	for line := range strings.Lines(rest) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			first = append(first, cells[1])
			all[cells[1]] = cells[2]
		}
	}
	return first, all
}

// TestDocumentedNames: the page lists exactly the variables that the program reads, calls exactly
// the switches so, and has every flag.
func TestDocumentedNames(t *testing.T) {
	read := make(map[string]bool)
	for _, dir := range []string{"handlers/toolhost", "cmd/trunkline"} {
		err := filepath.WalkDir(filepath.Join(top, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if namesIn(read, quotedName, "", string(text)); strings.HasSuffix(path, "selector/policy.go") {
				namesIn(read, policyName, "MACHINA_POLICY_", string(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first, values := rows(t, "docs/toolhost.md", "Environment and flags")
	shown, booleans := make(map[string]bool), make(map[string]bool)
	for cell, value := range values {
		namesIn(shown, codeName, "", cell)
		if strings.HasPrefix(strings.TrimSpace(value), "switch;") {
			namesIn(booleans, codeName, "", cell)
		}
	}
	same(t, "variables", shown, read)
	same(t, "switches", booleans, set(switches))

	text, err := os.ReadFile(filepath.Join(top, "cmd/trunkline/toolhost.go"))
	if err != nil {
		t.Fatal(err)
	}
	flags, shownFlags := make(map[string]bool), make(map[string]bool)
	namesIn(flags, flagName, "", string(text))
	for _, cell := range first {
		if strings.HasPrefix(cell, " `--") {
			namesIn(shownFlags, codeFlag, "", cell)
		}
	}
	same(t, "flags", shownFlags, flags)
}

func set(list []string) map[string]bool {
	m := make(map[string]bool)
	for _, s := range list {
		m[s] = true
	}
	return m
}

func same(t *testing.T, what string, shown, read map[string]bool) {
	t.Helper()
	a, b := slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(read))
	if len(b) == 0 || !slices.Equal(a, b) {
		t.Errorf("%s: the page has\n%s\nthe code has\n%s", what, strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}
