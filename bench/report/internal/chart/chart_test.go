package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata with what the tests get")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s has changed; look at it before -rewrite accepts it:\n%s", path, got)
	}
}

// texts reads a picture as XML and returns what is written in it. It refuses what a static picture
// must not have.
func texts(t *testing.T, svg []byte) (written []string) {
	t.Helper()
	d, inside := xml.NewDecoder(strings.NewReader(string(svg))), ""
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return written
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, svg)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			inside = tok.Name.Local
			if !slices.Contains([]string{"svg", "title", "g", "path", "text"}, inside) {
				t.Errorf("a %s", inside)
			}
			for _, a := range tok.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("%s has %s=%q", inside, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			if inside == "text" || inside == "title" {
				written = append(written, string(tok))
			}
		case xml.EndElement:
			inside = ""
		}
	}
}

// has checks that each of the texts stands in a picture, and on a white ground.
func has(t *testing.T, svg []byte, want ...string) {
	t.Helper()
	written := texts(t, svg)
	for _, w := range want {
		if !slices.Contains(written, w) {
			t.Errorf("nowhere stands %q in %q", w, written)
		}
	}
	if _, first, _ := strings.Cut(string(svg), "<path"); !strings.Contains(strings.SplitN(first, "/>", 2)[0], "fill:#FFFFFF") {
		t.Error("the ground is not white")
	}
}

func hasNot(t *testing.T, svg []byte, words ...string) {
	t.Helper()
	written := texts(t, svg)
	for _, w := range words {
		if slices.Contains(written, w) {
			t.Errorf("%q stands in %q", w, written)
		}
	}
}

// chartOf has lines over the same places.
func chartOf(at []float64, lines map[string][]float64) goal.Chart {
	c := goal.Chart{Name: "c", Title: "Costs as something grows", X: "rows", Y: "µs per request"}
	names := []string{"first", ours, "second", "high"}
	for _, n := range names {
		for i, v := range lines[n] {
			c.Add(n, at[i], v)
		}
	}
	return c
}

// TestTitleStaysInside: a long title is broken into lines, in the middle of the whole picture and
// not of the plot beside its legend.
func TestTitleStaysInside(t *testing.T) {
	c := chartOf([]float64{1, 2}, map[string][]float64{"first": {1, 2}, ours: {1, 2}})
	c.Title = strings.Repeat("wide words of a title ", 6)
	c.Lines[0].Name = "a line with a name of many letters"
	svg := string(must(t)(Lines(c, nil)))
	for _, m := range regexp.MustCompile(`<text x="([-0-9.]+)" y="[-0-9.]+"`).FindAllStringSubmatch(svg, -1) {
		if strings.HasPrefix(m[1], "-") {
			t.Errorf("a text begins left of the picture, at %s", m[1])
		}
	}
	if n := strings.Count(svg, "font-weight:bold"); n < 2 {
		t.Errorf("the title has %d lines", n)
	}
}

func must(t *testing.T) func(svg []byte, err error) []byte {
	return func(svg []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return svg
	}
}
