package config

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

//go:generate go test -run ^TestPages . -update

var update = flag.Bool("update", false, "write the table of docs/settings.md, and how many settings other pages show")

// hold compares a page with what it should be, and writes that with -update.
func hold(t *testing.T, name, page, want string) {
	t.Helper()
	switch {
	case page == want:
	case !*update:
		t.Errorf("%s is not that of the table of settings: make generate writes it", name)
	default:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesHaveTheTable keeps docs/settings.md equal to the table, row for row. Ranges in words are
// those of the page.
func TestPagesHaveTheTable(t *testing.T) {
	const name = "../../../../docs/settings.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	words, first, last := make(map[string]string), -1, 0
	lines := strings.SplitAfter(string(page), "\n")
	for i, line := range lines {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") &&
			strings.HasPrefix(cells[1], "`"+envPrefix) {
			words[strings.Trim(cells[0], "| `")] = cells[3]
			if last = i + 1; first < 0 {
				first = i
			}
		}
	}
	var rows strings.Builder
	for _, s := range table {
		within, shown := words[s.key]
		switch _, isBool := s.def.(bool); {
		case s.max > 0:
			within = fmt.Sprintf("%d..%d", s.min, s.max)
		case s.oneOf != nil:
			within = "`" + strings.Join(s.oneOf, "`, `") + "`"
		case !shown && isBool:
			within = "`true`, `false`"
		case !shown:
			within = "text"
		}
		fmt.Fprintf(
			&rows,
			"| `%s` | `%s` | `%v` | %s | %s |\n",
			s.key,
			envName(s.key),
			cmp.Or(fmt.Sprint(s.def), `""`),
			within,
			s.help,
		)
	}
	hold(t, name, string(page), strings.Join(lines[:first], "")+rows.String()+strings.Join(lines[last:], ""))
}

var (
	summaryShown = regexp.MustCompile(
		`(?:, settings: |settings="| settings +|settings are valid \()(\d+ from [^"\n;)]*)`,
	)
	layerShown    = regexp.MustCompile(`(\d+) from (\S+)`)
	defaultsShown = regexp.MustCompile(`\d+ from defaults`)
)

// TestPagesShowHowManySettingsThereAre: where a page shows how many settings come from where, they
// add up to the table.
func TestPagesShowHowManySettingsThereAre(t *testing.T) {
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(len(pages), err)
	}
	shown := 0
	for _, name := range append(pages, "../../../../README.md") {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		hold(t, name, string(page), summaryShown.ReplaceAllStringFunc(string(page), func(summary string) string {
			shown++
			left := len(table)
			for _, layer := range layerShown.FindAllStringSubmatch(summary, -1) {
				if n, _ := strconv.Atoi(layer[1]); layer[2] != "defaults" {
					left -= n
				}
			}
			return defaultsShown.ReplaceAllString(summary, fmt.Sprintf("%d from defaults", left))
		}))
	}
	if shown == 0 {
		t.Error("no page shows how many settings there are")
	}
}

// TestReferenceNamesTheLiveSettings keeps the list of what a reload changes equal to the marks.
func TestReferenceNamesTheLiveSettings(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "\n## What a reload changes\n")
	list, _, ends := strings.Cut(list, "\n## ")
	if !found || !ends {
		t.Fatal("docs/settings.md has no such section")
	}
	for _, s := range table {
		if named := strings.Contains(list, "`"+s.key+"`"); named != s.live {
			t.Errorf("%s is live: %v, and docs/settings.md lists it: %v", s.key, s.live, named)
		}
	}
}

// TestDedicatedFlagsAreInTheReference: they are the part of a setting's name that its row does not
// show.
func TestDedicatedFlagsAreInTheReference(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dedicated {
		if !slices.ContainsFunc(table, func(s setting) bool { return s.key == d.key }) || !strings.Contains(string(page), "`--"+d.flag+"`") {
			t.Errorf("docs/settings.md does not name --%s", d.flag)
		}
	}
}
