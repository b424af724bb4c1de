package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected pictures in testdata with what the tests draw")

// written is a text of a picture, and the box that it may take.
type written struct {
	text                     string
	left, right, top, bottom float64
}

// draw returns the picture of panels and its texts. It refuses what a static picture must not have,
// and texts that leave the picture or touch each other.
func draw(t *testing.T, p *Picture) (svg string, texts []written) {
	t.Helper()
	svg = string(p.SVG())
	dec, at, high := xml.NewDecoder(strings.NewReader(svg)), (*xml.StartElement)(nil), 0.0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if !slices.Contains([]string{"svg", "title", "desc", "style", "rect", "line", "path", "text"}, tok.Name.Local) {
				t.Errorf("a %s", tok.Name.Local)
			}
			for _, a := range tok.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("%s has %s=%q", tok.Name.Local, a.Name.Local, a.Value)
				}
			}
			if tok.Name.Local == "svg" {
				high = number(t, attr(tok, "height"))
			}
			tok = tok.Copy()
			at = &tok
		case xml.CharData:
			if at != nil && at.Name.Local == "text" {
				texts = append(texts, place(t, *at, string(tok)))
			}
		case xml.EndElement:
			at = nil
		}
	}
	for i, a := range texts {
		if a.left < 0 || a.right > across || a.bottom > high || a.top < 0 {
			t.Errorf("%q leaves the picture: %+v", a.text, a)
		}
		for _, b := range texts[:i] {
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				t.Errorf("%q and %q touch: %+v %+v", a.text, b.text, a, b)
			}
		}
	}
	return svg, texts
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// place is the box of a text: its upper estimate of a width, and the height of its letters.
func place(t *testing.T, e xml.StartElement, s string) written {
	t.Helper()
	class, size := attr(e, "class"), textSize
	switch class {
	case "h1":
		size = headSize
	case "h2":
		size = titleSize
	}
	x, y, w := number(t, attr(e, "x")), number(t, attr(e, "y")), width(s, size)
	switch {
	case strings.HasSuffix(class, "end"):
		x -= w
	case strings.HasSuffix(class, "mid"):
		x -= w / 2
	}
	return written{s, x, x + w, y - size*0.8, y + size*0.2}
}

func has(t *testing.T, texts []written, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(texts, func(x written) bool { return x.text == w }) {
			t.Errorf("nowhere stands %q in %v", w, texts)
		}
	}
}

func points(xy ...float64) (all []Point) {
	for i := 0; i < len(xy); i += 2 {
		all = append(all, Point{xy[i], xy[i+1]})
	}
	return all
}

// overSizes has one line of each style, over some decades.
func overSizes() *Picture {
	p := &Picture{Title: "Server CPU per request as depth grows, at 64 connections, for each of the servers that a reader might use in place of ours"}
	panel := Panel{X: Axis{"requests in flight on each connection", Sizes, 0}, Y: Axis{"server CPU µs per request", Ranging, 0}, Ours: "trunkline"}
	for i, name := range []string{"trunkline", "baregnet", "redis-server", "redcon", "nats", "grpc-go", "netconn", "another kernel server"} {
		by := float64(i*i + 1)
		panel.Lines = append(panel.Lines, Line{name, Style(i), points(1, 9*by, 16, 0.8*by, 64, 0.5*by)})
	}
	p.Panels = []Panel{panel}
	return p
}

func overTime() *Picture {
	gap := math.NaN()
	return &Picture{
		Title: "Load on a server", Head: []string{"constant 5,000/s for 20s"}, Notes: []string{strings.Repeat("A note that is long. ", 12)},
		Panels: []Panel{
			{Title: "Rate", X: Axis{"seconds", Linear, 9}, Y: Axis{Name: "requests per second"}, Lines: []Line{
				{"due", Grey, points(0, 5000, 4, 5000, 8, 5000)}, {"done", Green, points(0, 4900, 2, gap, 4, 5000, 8, 12_000)},
			}},
			{Title: "Nothing", X: Axis{"seconds", Linear, 9}, Y: Axis{Name: "milliseconds"}, Lines: []Line{{"p50", Blue, points(2, gap)}}, Empty: "nothing answered"},
		},
	}
}

func besides() *Picture {
	names := []string{"grpc-go", "nats", "redis-server", "redcon", "netconn", "bare gnet", "trunkline", "none"}
	return &Picture{Title: "Servers beside each other", Panels: []Panel{
		{Title: "One row", Y: Axis{"server CPU µs per request", Ranging, 0}, Names: names, Ours: "trunkline", Bars: []Bars{{Values: []float64{50, 2.59, 1.2, 1.12, 0.278, 0.246, 0.563, 0}}}},
		{Title: "Three rows", X: Axis{Name: "servers"}, Y: Axis{Name: "µs"}, Names: names[:3], Bars: []Bars{
			{"p50", Blue, []float64{30, 20, 10}, nil}, {"p99", Violet, []float64{60, 80, 20}, nil}, {"p99.9", Amber, []float64{120, 0, 40}, []string{"a lot"}},
		}},
	}}
}

func TestPictures(t *testing.T) {
	for name, p := range map[string]*Picture{"sizes": overSizes(), "time": overTime(), "bars": besides()} {
		svg, _ := draw(t, p)
		path := filepath.Join("testdata", name+".svg")
		if *rewrite {
			if err := os.WriteFile(path, []byte(svg), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), svg); diff != "" {
			t.Errorf("%s (-want +got; look at it before -rewrite accepts it):\n%s", path, diff)
		}
	}
}

func TestWhatStandsInPictures(t *testing.T) {
	_, texts := draw(t, overSizes())
	has(t, texts, "server CPU µs per request, logarithmic", "1", "16", "64", "trunkline", "another kernel server")
	_, texts = draw(t, overTime())
	has(t, texts, "5,000", "15,000", "8", "seconds", "due", "nothing answered")
	_, texts = draw(t, besides())
	has(t, texts, "50", "0.563", "bare gnet", "none", "p99.9", "a lot", "0", "50")
}

// TestLooks: no two lines share dash and shape, and both themes have all colours.
func TestLooks(t *testing.T) {
	dashes, shapes := map[string]bool{}, map[string]bool{}
	light, dark, _ := strings.Cut(sheet(), "prefers-color-scheme:dark")
	for i := range looks {
		s := Style(i)
		dashes[looks[i].dash], shapes[s.shape()] = true, true
		if s.class() != Style(i+len(looks)).class() {
			t.Errorf("style %d does not begin again", i)
		}
		for theme, colour := range map[string]string{light: looks[i].light, dark: looks[i].dark} {
			if !strings.Contains(theme, "."+s.class()+"{stroke:"+colour) {
				t.Errorf("a theme has no %s", s.class())
			}
		}
	}
	if len(dashes) != len(looks) || len(shapes) != len(looks) {
		t.Errorf("%d dashes and %d shapes of %d", len(dashes), len(shapes), len(looks))
	}
}

// TestAnyText: whatever stands in a picture, it is XML, and long texts stay inside.
func TestAnyText(t *testing.T) {
	for _, s := range []string{"", " ", "<&\"'\x00\x1b]]>", strings.Repeat("wide ", 100), strings.Repeat("W", 300), "東京の長い名前" + strings.Repeat("語", 80)} {
		p := overSizes()
		p.Title, p.Head, p.Notes = s, []string{s}, []string{s}
		p.Panels[0].Title, p.Panels[0].X.Name, p.Panels[0].Y.Name = s, "x", s
		draw(t, p)
		q := besides()
		q.Panels[0].Names = []string{s, "b"}
		draw(t, q)
	}
}

func TestDescription(t *testing.T) {
	f := func(p *Picture, want string) {
		t.Helper()
		if svg, _ := draw(t, p); !strings.Contains(svg, want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	f(overSizes(), "trunkline 9 at 1, 0.8 at 16, 0.5 at 64; ")
	f(overTime(), "Rate. requests per second: due from 5,000 to 5,000; done from 4,900 to 12,000. Nothing. milliseconds: p50 none.</desc>")
	f(besides(), "grpc-go 50; ")
	f(besides(), "Three rows. µs: grpc-go p50 30; nats p50 20;")
}

func TestGapsAreNotBridged(t *testing.T) {
	gap := math.NaN()
	f := func(want string, xy ...float64) {
		t.Helper()
		d := &drawing{height: plotHeight}
		d.line(new(Panel), &Line{Points: points(xy...)}, scale{high: 10}, scale{high: 10})
		path, _, _ := strings.Cut(d.b.String(), `"/>`)
		if _, got, _ := strings.Cut(path, `d="`); got != want {
			t.Errorf("%v: %q, want %q", xy, got, want)
		}
	}
	f("")
	f("", 0, gap)
	f("M76 150h.01", 0, 0)
	f("M76 150L145.6 135", 0, 0, 1, 1)
	f("M76 150h.01M215.2 135L284.8 135", 0, 0, 1, gap, 2, 1, 3, 1)
	f("M76 150L145.6 150M284.8 0h.01", 0, 0, 1, 0, 2, gap, 3, 10)
}
