package chart

import "strings"

// Style is how a line or a row of bars looks: a colour, a dash and the shape of its points.
type Style int

// The styles. What is beyond them begins again.
const (
	Blue Style = iota
	Amber
	Green
	Violet
	Red
	Teal
	Pink
	Grey
)

// looks are the colours of both themes, written out for each: not every program that shows SVG
// knows variables. A shape is a path that begins where its point stands; a name is a class.
var looks = []struct{ name, light, dark, dash, shape string }{
	Blue:   {"blue", "#0969da", "#58a6ff", "", "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"},
	Amber:  {"amber", "#9a6700", "#e3b341", "10 3 2 3", "m-3.5-3.5h7v7h-7z"},
	Green:  {"green", "#1a7f37", "#3fb950", "16 3", "m0-4.5l4.5 8h-9z"},
	Violet: {"violet", "#8250df", "#bc8cff", "8 4", "m0-5l4.5 5-4.5 5-4.5-5z"},
	Red:    {"red", "#cf222e", "#ff7b72", "6 3", "m0 4.5l-4.5-8h9z"},
	Teal:   {"teal", "#0b7285", "#39c5cf", "3 2", "m-1.4-4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2z"},
	Pink:   {"pink", "#bf3989", "#ff80c8", "2 3 8 3", "m0-1.9l2.7-2.7 1.9 1.9-2.7 2.7 2.7 2.7-1.9 1.9-2.7-2.7-2.7 2.7-1.9-1.9 2.7-2.7-2.7-2.7 1.9-1.9z"},
	Grey:   {"grey", "#6e7781", "#9198a1", "2 4", "m-5-1.5h10v3h-10z"},
}

func (s Style) class() string { return looks[int(s)%len(looks)].name }
func (s Style) shape() string { return looks[int(s)%len(looks)].shape }

// sheet is the style sheet. Colours of lines are of lesser rank than that lines are not filled.
func sheet() string {
	var b, light, dark strings.Builder
	for _, l := range looks {
		light.WriteString("." + l.name + "{stroke:" + l.light + ";fill:" + l.light + "}")
		dark.WriteString("." + l.name + "{stroke:" + l.dark + ";fill:" + l.dark + "}")
		if l.dash != "" {
			b.WriteString("path.line." + l.name + "{stroke-dasharray:" + l.dash + "}")
		}
	}
	return `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.h1{font-size:17px;font-weight:600}.h2{font-size:14px;font-weight:600}.mid{text-anchor:middle}.end{text-anchor:end}
path.line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}path.ours{stroke-width:3}path.mark,rect.bar{stroke:none}
` + b.String() + `
.bg{fill:#fff}.over{paint-order:stroke;stroke:#fff;stroke-width:4px}text{fill:#1f2328}.tick,.soft{fill:#59636e}.grid{stroke:#d8dee4}.base{stroke:#59636e}
` + light.String() + `
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.over{stroke:#0d1117}text{fill:#e6edf3}.tick,.soft{fill:#9198a1}.grid{stroke:#30363d}.base{stroke:#9198a1}
` + dark.String() + `
}
</style>
`
}
