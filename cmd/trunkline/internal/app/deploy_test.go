package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/knadh/koanf/parsers/yaml"
)

const deployDir = "../../../../deploy"

// TestClassicHistogramsAreScraped: Prometheus keeps no series of the classic form, which the rules
// read, beside native histograms by itself.
func TestClassicHistogramsAreScraped(t *testing.T) {
	for _, name := range []string{"prometheus/trunkline.rules.yml", "../docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join(deployDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if n, c := strings.Index(string(text), "scrape_native_histograms"), strings.Index(string(text), "always_scrape_classic_histograms"); n < 0 || c < n {
			t.Errorf("%s has the setting for native histograms at %d, for classic ones at %d", name, n, c)
		}
	}
}

// TestAlertRules: each rule is whole, and what it refers to for help is a section of the page.
func TestAlertRules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployDir, "prometheus/trunkline.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, name := range []string{"docs/operations.md", "docs/store.md", "docs/tls.md", "docs/cluster.md"} {
		page, err := os.ReadFile(filepath.Join(deployDir, "..", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(page)) {
			if head := strings.TrimLeft(line, "#"); head != line {
				sections[name+"#"+strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(head)), ",", ""), " ", "-")] = true
			}
		}
	}
	parsed, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Record, Alert, Expr string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := json.Unmarshal(again, &file); err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		switch {
		case r.Expr == "":
			t.Errorf("%s%s has no expression", r.Record, r.Alert)
		case r.Record != "":
		case alerts[r.Alert+r.Labels["severity"]] || r.Annotations["summary"] == "" || r.Labels["severity"] != "warning" && r.Labels["severity"] != "critical":
			t.Errorf("%+v", r)
		case !sections[runbookOf(r.Annotations["runbook_url"], "")] || runbookOf(r.Annotations["runbook_url"], "https://x/docs") != "https://x/"+runbookOf(r.Annotations["runbook_url"], ""):
			t.Errorf("%s leads to %s, which is not there", r.Alert, r.Annotations["runbook_url"])
		}
		alerts[r.Alert+r.Labels["severity"]] = true
	}
	if len(alerts) < 15 {
		t.Errorf("only %d alerts were found", len(alerts))
	}
}

// runbookOf expands an annotation as Prometheus does, with the base that an operator sets.
func runbookOf(annotation, base string) string {
	t, err := template.New("").Parse("{{ $externalLabels := . }}" + annotation)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if err := t.Execute(&b, map[string]string{"docs_url": base}); err != nil {
		return err.Error()
	}
	return b.String()
}

// TestRulesWithPromtool checks and runs the rules with the tool of Prometheus.
func TestRulesWithPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	for _, args := range [][]string{{"check", "rules", "trunkline.rules.yml"}, {"test", "rules", "trunkline.test.yml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = filepath.Join(deployDir, "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestDashboard: every panel has its place, a query and a unit, and none lies on another.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployDir, "grafana/trunkline.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID, Title string
		Panels     []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
			FieldConfig struct{ Defaults struct{ Unit string } }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "") {
			t.Errorf("%s shows nothing", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%s lies on %s", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
	}
	if board.UID == "" || len(board.Panels) < 20 {
		t.Errorf("%s has %d panels", board.Title, len(board.Panels))
	}
}
