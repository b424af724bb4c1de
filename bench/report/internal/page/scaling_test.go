package page

import (
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

func growth(name string) goal.Chart {
	c := goal.Chart{Name: name, Title: "Cost of " + name + ".", X: "rows", Y: "µs"}
	c.Add("get", 10_000, 1)
	c.Add("get", 1e6, 1.5)
	c.Add("set", 10_000, 2)
	c.Add("set", 1e6, 0)
	return c
}

func drawn(t *testing.T, run *figures.Run) (text string, b *builder) {
	t.Helper()
	b = &builder{set: &figures.Set{Runs: map[string]*figures.Run{"scale": run}}, folder: "f", charts: map[string][]byte{}}
	text, err := b.scaling()
	if err != nil {
		t.Fatal(err)
	}
	return tidy(text), b
}

func TestScaling(t *testing.T) {
	text, b := drawn(t, &figures.Run{Charts: []goal.Chart{growth("rows"), growth("fanout")}, Tables: []figures.Table{
		{Name: "tuning", Title: "Settings", Head: []string{"variant"}, Rows: [][]string{{"2 loops"}}},
		{Name: "gc", Title: "Collections", Head: []string{"load"}, Rows: [][]string{{"all"}}},
		{Name: "rows", Title: "How rows were made.", Head: []string{"rows", "µs"}, Rows: [][]string{{"10k", "3.5"}}},
	}})
	want := "Not measured: `make bench-peers` has left no figures.\n\n### Cost of rows\n\n![Cost of rows.](f/rows.svg)\n\n" +
		"| µs, by rows | 10k | 1M |\n|---|---:|---:|\n| get | 1.00 | 1.50 |\n| set | 2.00 | - |\n\n" +
		"How rows were made:\n\n| rows | µs |\n|---|---:|\n| 10k | 3.5 |\n\n### Cost of fanout\n"
	if !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "Collections:\n\n| load |\n|---|\n| all |\n") || strings.Contains(text, "Settings") {
		t.Errorf("%s, want it to begin with %s", text, want)
	}
	if got := tidy(b.tuning()); got != "Settings:\n\n| variant |\n|---|\n| 2 loops |\n" {
		t.Errorf("tuning: %s", got)
	}
	if len(b.charts) != 2 {
		t.Errorf("%d charts", len(b.charts))
	}
}

// TestNoTables: tables without charts are shown, and nothing else is made of them.
func TestNoTables(t *testing.T) {
	text, b := drawn(t, &figures.Run{Tables: []figures.Table{{Name: "gc", Title: "Collections", Head: []string{"load"}}}})
	if !strings.Contains(text, "Collections:") || len(b.charts) != 0 {
		t.Errorf("%s", text)
	}
	if got := b.tuning(); got != notMeasured("make bench-scale") {
		t.Errorf("tuning: %s", got)
	}
	empty := growth("none")
	empty.Lines = nil
	if text, _ = drawn(t, &figures.Run{Charts: []goal.Chart{empty}}); !strings.Contains(text, "### Cost of none\n\nNo figures.\n") {
		t.Errorf("an empty chart: %s", text)
	}
}
