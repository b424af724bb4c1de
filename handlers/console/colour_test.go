package console

import (
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// colours returns the colours of a part of the style sheet.
func colours(css string) map[string]string {
	m := map[string]string{}
	for _, v := range variable.FindAllStringSubmatch(css, -1) {
		m[v[1]] = v[2]
	}
	return m
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(colour, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestContrast: text has 4.5:1 in both schemes, edges of controls and the focus have 3:1 (WCAG 2.2,
// 1.4.3 and 1.4.11), and no rule has a colour beside the variables.
func TestContrast(t *testing.T) {
	text, err := fs.ReadFile(files, "page/console.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(text), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("there is no dark scheme")
	}
	dark, rules, _ := strings.Cut(dark, "\n}\n")
	for name, c := range map[string]map[string]string{"light": colours(light), "dark": colours(dark)} {
		f := func(front, back string, least float64) {
			t.Helper()
			if c[front] == "" || c[back] == "" {
				t.Errorf("%s: no colour %s or %s", name, front, back)
				return
			}
			if got := contrast(t, c[front], c[back]); got < least {
				t.Errorf("%s: %s on %s has %.2f:1, at least %.1f:1", name, front, back, got, least)
			}
		}
		for _, back := range []string{"back", "panel"} {
			for _, front := range []string{"text", "soft", "link", "bad", "good", "warn"} {
				f(front, back, 4.5)
			}
			f("edge", back, 3)
		}
		f("on-button", "button", 4.5)
		f("on-danger", "danger", 4.5)
		f("button", "back", 3)
	}
	if len(colours(light)) != len(colours(dark)) {
		t.Error("the schemes have different colours")
	}
	if other := regexp.MustCompile(`#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(`).FindString(rules); other != "" {
		t.Errorf("a rule has the colour %s, beside the variables", other)
	}
	if !strings.Contains(rules, "prefers-reduced-motion: reduce") {
		t.Error("there is no rule for reduced motion")
	}
	if got := contrast(t, "#ffffff", "#000000"); math.Abs(got-21) > 1e-9 {
		t.Errorf("white on black has %v:1", got)
	}
}
