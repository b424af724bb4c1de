package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReferenceIsTheTable keeps docs/settings.md equal to the table, row for row.
func TestReferenceIsTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") && strings.Contains(line, "` | `"+envPrefix) {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	for i, s := range table {
		def := fmt.Sprint(s.def)
		if def == "" {
			def = `""`
		}
		begin := fmt.Sprintf("| `%s` | `%s` | `%s` | ", s.key, envName(s.key), def)
		switch {
		case i >= len(rows) || !strings.HasPrefix(rows[i], begin) || !strings.HasSuffix(rows[i], " | "+s.help+" |"):
			t.Errorf("row %d of docs/settings.md is not %s… | %s |", i+1, begin, s.help)
		case s.max > 0 && !strings.Contains(rows[i], fmt.Sprintf("| %d..%d |", s.min, s.max)):
			t.Errorf("row %d of docs/settings.md lacks the range %d..%d", i+1, s.min, s.max)
		case s.oneOf != nil && !strings.Contains(rows[i], "| `"+strings.Join(s.oneOf, "`, `")+"` |"):
			t.Errorf("row %d of docs/settings.md lacks the values %v", i+1, s.oneOf)
		}
	}
	if len(rows) != len(table) {
		t.Errorf("docs/settings.md has %d rows, the table %d", len(rows), len(table))
	}
}

var (
	summaryShown = regexp.MustCompile(`(?:, settings: |settings="| settings +|settings are valid \()(\d+ from [^"\n;)]*)`)
	layerShown   = regexp.MustCompile(`(\d+) from`)
)

// TestDocsShowHowManySettingsThereAre: where a page shows how many settings come from where, they
// add up to the table.
func TestDocsShowHowManySettingsThereAre(t *testing.T) {
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(len(pages), err)
	}
	shown := 0
	for _, page := range append(pages, "../../../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, summary := range summaryShown.FindAllStringSubmatch(string(text), -1) {
			sum := 0
			for _, layer := range layerShown.FindAllStringSubmatch(summary[1], -1) {
				n, _ := strconv.Atoi(layer[1])
				sum += n
			}
			if shown++; sum != len(table) {
				t.Errorf("%s shows %q: %d settings, the table has %d", page, summary[0], sum, len(table))
			}
		}
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
