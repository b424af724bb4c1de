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
	f(Grid{Title: "t", Head: []string{"n", "what"}, Rows: [][]any{{1.0, "x y"}, {123.4, ""}}}, "\nt\n     n  what\n  1.00  x y\n   123  \n")
	f(Grid{Head: []string{"what", "n"}, Rows: [][]any{{"x", 3}, {"y", nil}}}, "\n  what  n\n     x  3\n     y  -\n")
}

func TestGridAsMarkdown(t *testing.T) {
	g := Grid{Title: "t", Head: []string{"what", "n", "both"}, Rows: [][]any{{"a|b", 1.5, "x"}, {"c", nil, 2}}}
	want := "| what | n | both |\n|---|---:|---|\n| a\\|b | 1.50 | x |\n| c | - | 2 |\n"
	if got := g.Markdown(Text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
