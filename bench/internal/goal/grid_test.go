package goal

import (
	"strings"
	"testing"
)

func TestGridIsPrinted(t *testing.T) {
	f := func(g Grid, want string) {
		t.Helper()
		var out strings.Builder
		if g.Print(&out); out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	f(Grid{Title: "t", Head: []string{"n", "what"}, Rows: [][]any{{1.0, "x y"}, {1234.4, ""}}}, "\nt\n      n  what\n      1  x y\n  1,234  \n")
	f(Grid{Head: []string{"what", "n"}, Rows: [][]any{{"x", 3}, {"y", nil}}}, "\n  what  n\n     x  3\n     y  -\n")
}

func TestGridAsMarkdown(t *testing.T) {
	g := Grid{Title: "t", Head: []string{"what", "n", "both"}, Rows: [][]any{{"a|b", 1.5, "x"}, {"c", nil, 2}}}
	want := "| what | n | both |\n|---|---:|---|\n| a\\|b | 1.5 | x |\n| c | - | 2 |\n"
	if got := g.Markdown(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGoalsArePrinted(t *testing.T) {
	g := Goal{ID: "G1", What: "costs", Must: 2, Moonshot: 1}
	g.Add("a", 0.5)
	r := Report{Goals: []Goal{g}}
	r.Goals[0].Evaluate()
	var out strings.Builder
	r.Print(&out)
	want := "\n\n  goal  asked (moonshot)  measured   verdict  what\n    G1           ≤ 2 (1)       0.5  moonshot  costs: a 0.5\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want %q at its end", out.String(), want)
	}
}
