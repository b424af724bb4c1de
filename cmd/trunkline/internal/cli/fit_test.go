package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	rows := [][]string{{"NAME", "DOES", "FIELDS"}, {"a", "one two three", "x, y"}, {"long", "", "z"}}
	f := func(width int, want ...string) {
		t.Helper()
		var got []string
		for _, row := range fit(rows, width) {
			got = append(got, strings.Join(row, "|"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d:\n%s\nwant\n%s", width, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	whole := []string{"NAME|DOES|FIELDS", "a|one two three|x, y", "long||z"}
	f(27, whole...)
	f(26, "NAME|DOES|FIELDS", "a|one two|x, y", "|three|", "long||z")
	f(19, "NAME|DOES|FIELDS", "a|one|x, y", "|two|", "|three|", "long||z")
	f(18, whole...) // the longest words take 19
	f(1, whole...)
	rows = nil
	f(80)
	rows = [][]string{{"one two"}, {"a", "three four"}}
	f(16, "one two", "a|three", "|four") // rows of different lengths
	rows = [][]string{{"1", "one/two/three", "of one/two/three/"}}
	f(32, "1|one/two/three|of", "||one/two/three/")
	f(26, "1|one/|of one/", "|two/|two/", "|three|three/")
	f(5, "1|one/two/three|of one/two/three/")
	rows = [][]string{{"1", "some_long_name", "x"}}
	f(17, "1|some_|x", "|long_name|")
	rows = [][]string{{"äöü äöü"}}
	f(7, "äöü äöü")
	f(6, "äöü", "äöü")
}

// TestWidthOfNoTerminal: what is no terminal has no width.
func TestWidthOfNoTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := Columns(f) + Columns(io.Discard); n != 0 {
		t.Errorf("%d columns", n)
	}
}
