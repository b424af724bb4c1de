// Package chart draws figures as SVG pictures: lines over time, lines over sizes, and bars.
//
// A picture is static: it has no script, no font of its own and nothing from elsewhere. It follows
// the reader's light or dark theme. Lines differ by dash and by the shape of their points, for
// readers who do not see the colours apart; a title and a description with the figures stand for
// readers who see no picture. Texts are placed by an upper estimate of their width: a title that is
// too long is broken, and names that do not fit beside each other stand below each other. The same
// figures give the same bytes.
package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Picture is panels, one below the other.
type Picture struct {
	Title  string   // in the largest letters
	Head   []string // lines below the title
	Panels []Panel
	Notes  []string // sentences without which the picture would be misread, at its end
}

// Panel is one pair of axes with lines, or with bars.
type Panel struct {
	Title string // may be empty below the title of the picture
	X, Y  Axis
	Lines []Line
	// Names are those of groups of bars, from the left; each of Bars has one bar in each group.
	Names []string
	Bars  []Bars
	Ours  string // the line, or the group of bars of one row, that is drawn stronger
	Empty string // what stands in place of figures where there are none
}

// Line is one line of a panel.
type Line struct {
	Name   string // in the legend; empty: none
	Style  Style
	Points []Point
}

// Point is one figure of a line. A figure that is not a number is a gap.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Bars is one row of bars, by group. A bar that is not above zero was not measured.
type Bars struct {
	Name   string
	Style  Style
	Values []float64
	Labels []string // above the bars; nil: the values, where there is one row alone
}

// The places of a picture, in pixels.
const (
	across     = 800.0
	margin     = 20.0
	plotLeft   = 76.0
	plotRight  = across - 28
	lineHeight = 18.0
	plotHeight = 150.0
	alone      = 260.0 // height of a plot that is the only one
	panelSpace = 26.0
	legendLine = 26.0 // length of a line in the legend
	legendGap  = 20.0
)

// drawing is a picture that grows downwards.
type drawing struct {
	b           strings.Builder
	top, height float64 // of the plot that is being drawn
}

// SVG draws the picture.
func (p *Picture) SVG() []byte {
	d := &drawing{top: 12, height: plotHeight}
	if len(p.Panels) == 1 {
		d.height = alone
	}
	d.lines(margin, headSize, "h1", p.Title)
	for _, s := range p.Head {
		d.lines(margin, textSize, "soft", s)
	}
	for i := range p.Panels {
		d.top += panelSpace / 2
		d.panel(&p.Panels[i])
		d.top += panelSpace / 2
	}
	for _, s := range p.Notes {
		d.lines(margin, textSize, "", s)
	}
	size := fmt.Sprintf(`width="%s" height="%s"`, num(across), num(d.top+12))
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" %s viewBox="0 0 %s %s" role="img" aria-labelledby="title figures">`+
		"\n<title id=\"title\">%s</title>\n<desc id=\"figures\">%s</desc>\n%s"+`<rect class="bg" %s/>`+"\n%s</svg>\n",
		size, num(across), num(d.top+12), escape(p.Title), escape(p.figures()), sheet(), size, d.b.String())
}

// lines writes a text on as many lines as it needs, and goes on below.
func (d *drawing) lines(x, size float64, class, s string) {
	for _, line := range wrap(s, size, plotRight-x) {
		d.top += lineHeight
		if size > textSize {
			d.top += 2
		}
		d.text(x, d.top, class, line)
	}
}

func (d *drawing) panel(p *Panel) {
	d.lines(plotLeft, titleSize, "h2", p.Title)
	d.legend(p)
	x, y, empty := p.scales()
	d.upright(p, y)
	below := 1 // lines of text
	if len(p.Names) > 0 {
		below = d.bars(p, y)
	} else {
		d.bottom(x)
		for i := range p.Lines {
			d.line(p, &p.Lines[i], x, y)
		}
	}
	if empty {
		d.text((plotLeft+plotRight)/2, d.y(0.6), "soft over mid", p.Empty)
	}
	d.top += d.height + lineHeight*float64(below)
	if p.X.Name != "" {
		d.top += lineHeight
		d.text((plotLeft+plotRight)/2, d.top, "tick mid", p.X.Name)
	}
}

// scales are those of all figures of a panel, which is empty without any. A logarithmic one for
// bars begins below the least of them, which would have no height.
func (p *Panel) scales() (x, y scale, empty bool) {
	var across, up []float64
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			if !math.IsNaN(pt.Y) {
				across, up = append(across, pt.X), append(up, pt.Y)
			}
		}
	}
	if len(p.Bars) == 0 {
		return bottom(p.X, across), upright(p.Y, up, lineSpread), len(up) == 0
	}
	for _, b := range p.Bars {
		up = append(up, b.Values...)
	}
	low, high := bounds(up)
	if high > low*barSpread {
		up = append(up, low/2)
	}
	return bottom(p.X, across), upright(p.Y, up, barSpread), high == 0
}

// upright draws the axis of figures, with its name above it.
func (d *drawing) upright(p *Panel, y scale) {
	name := p.Y.Name
	if y.log {
		name += ", logarithmic"
	}
	d.lines(plotLeft, textSize, "tick", name)
	d.top += 10
	if slices.ContainsFunc(p.Bars, func(b Bars) bool { return p.label(&b, 0) != "" }) {
		d.top += 10 // above the highest bar
	}
	rule := func(class string, at float64) {
		d.tag(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(plotLeft), num(at), num(plotRight), num(at))
	}
	for _, t := range y.ticks {
		at := d.y(y.at(t.value))
		rule("grid", at)
		d.text(plotLeft-8, at+4, "tick end", t.label)
	}
	rule("base", d.y(0))
}

// bottom marks the axis along the bottom, without labels that would touch the one before.
func (d *drawing) bottom(x scale) {
	free := 0.0
	for _, t := range x.ticks {
		at, half := d.x(x.at(t.value)), width(t.label, textSize)/2
		if at-half < free {
			continue
		}
		d.text(at, d.top+d.height+lineHeight, "tick mid", t.label)
		free = at + half + 4
	}
}

// legend names lines or rows of bars, as many beside each other as there is room for.
func (d *drawing) legend(p *Panel) {
	x := across // a name begins the first line
	entry := func(name string, long float64, sample func(x, y float64)) {
		if name == "" {
			return
		}
		if x+long+6+width(name, textSize) > plotRight {
			x = plotLeft
			d.top += lineHeight
		}
		sample(x, d.top-4)
		d.text(x+long+6, d.top, "", name)
		x += long + 6 + width(name, textSize) + legendGap
	}
	for _, l := range p.Lines {
		entry(l.Name, legendLine, func(x, y float64) {
			d.tag(`<path class="line %s" d="M%s %sh%s"/>`, p.lineClass(&l), num(x), num(y), num(legendLine))
			if p.X.Kind != Linear {
				d.tag(`<path class="mark %s" d="M%s %s%s"/>`, l.Style.class(), num(x+legendLine/2), num(y), l.Style.shape())
			}
		})
	}
	for _, b := range p.Bars {
		entry(b.Name, 12, func(x, y float64) {
			d.tag(`<rect class="bar %s" x="%s" y="%s" width="12" height="12"/>`, b.Style.class(), num(x), num(y-6))
		})
	}
}

func (p *Panel) lineClass(l *Line) string {
	if l.Name != "" && l.Name == p.Ours {
		return l.Style.class() + " ours"
	}
	return l.Style.class()
}

// line draws a line, broken where there is no figure; a point alone is a dot. Points over sizes
// have their shape.
func (d *drawing) line(p *Panel, l *Line, x, y scale) {
	var path, marks strings.Builder
	pen := false
	for i, pt := range l.Points {
		if math.IsNaN(pt.Y) {
			pen = false
			continue
		}
		at := num(d.x(x.at(pt.X))) + " " + num(d.y(y.at(pt.Y)))
		switch {
		case pen:
			path.WriteString("L" + at)
		case i+1 == len(l.Points) || math.IsNaN(l.Points[i+1].Y):
			path.WriteString("M" + at + "h.01")
		default:
			path.WriteString("M" + at)
		}
		marks.WriteString("M" + at + l.Style.shape())
		pen = true
	}
	if path.Len() == 0 {
		return
	}
	d.tag(`<path class="line %s" d="%s"/>`, p.lineClass(l), path.String())
	if p.X.Kind != Linear {
		d.tag(`<path class="mark %s" d="%s"/>`, l.Style.class(), marks.String())
	}
}

// Shares of the room of a group of bars.
const (
	groupFill = 0.8 // all bars together
	loneFill  = 0.6 // the only bar of a group
)

// bars draws the groups with their names below, and returns how many lines these take.
func (d *drawing) bars(p *Panel, y scale) (below int) {
	slot := (plotRight - plotLeft) / float64(len(p.Names))
	thick := slot * groupFill / float64(len(p.Bars))
	if len(p.Bars) == 1 {
		thick = slot * loneFill
	}
	below = 1
	for i, name := range p.Names {
		middle := plotLeft + slot*(float64(i)+0.5)
		lines := wrap(name, textSize, slot-4)
		below = max(below, len(lines))
		for n, line := range lines {
			d.text(middle, d.top+d.height+lineHeight*float64(n+1), "tick mid", line)
		}
		for j, b := range p.Bars {
			if i >= len(b.Values) || !(b.Values[i] > 0) {
				continue
			}
			style := b.Style
			if p.Ours != "" && len(p.Bars) == 1 && name != p.Ours {
				style = Grey
			}
			x, top := middle+thick*(float64(j)-float64(len(p.Bars)-1)/2), d.y(y.at(b.Values[i]))
			d.tag(`<rect class="bar %s" x="%s" y="%s" width="%s" height="%s"/>`, style.class(), num(x-thick/2), num(top), num(thick), num(d.y(0)-top))
			if label := p.label(&b, i); label != "" {
				d.text(x, top-5, "over mid", label)
			}
		}
	}
	return below
}

// label is what stands above a bar.
func (p *Panel) label(b *Bars, i int) string {
	switch {
	case i < len(b.Labels):
		return b.Labels[i]
	case len(p.Bars) == 1 && i < len(b.Values):
		return Figure(b.Values[i])
	}
	return ""
}

// figures is what the picture shows, in words.
func (p *Picture) figures() string {
	var parts []string
	for i := range p.Panels {
		q := &p.Panels[i]
		var list []string
		for _, l := range q.Lines {
			list = append(list, strings.TrimSpace(l.Name+" "+q.words(l.Points)))
		}
		for _, b := range q.Bars {
			for j, v := range b.Values {
				if v > 0 && j < len(q.Names) {
					list = append(list, strings.TrimSpace(q.Names[j]+" "+b.Name)+" "+Figure(v))
				}
			}
		}
		parts = append(parts, strings.TrimPrefix(q.Title+". ", ". ")+q.Y.Name+": "+strings.Join(list, "; ")+".")
	}
	return strings.Join(parts, " ")
}

// words are the figures of a line: all of one over sizes, the least and the greatest of one over
// time.
func (p *Panel) words(points []Point) string {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return math.IsNaN(p.Y) })
	if len(points) == 0 {
		return "none"
	}
	if p.X.Kind == Linear {
		byY := func(a, b Point) int { return cmp.Compare(a.Y, b.Y) }
		return "from " + Figure(slices.MinFunc(points, byY).Y) + " to " + Figure(slices.MaxFunc(points, byY).Y)
	}
	list := make([]string, len(points))
	for i, pt := range points {
		list[i] = Figure(pt.Y) + " at " + short(pt.X)
	}
	return strings.Join(list, ", ")
}

// x and y are the places of shares of the width and the height of the plot.
func (d *drawing) x(share float64) float64 { return plotLeft + (plotRight-plotLeft)*share }
func (d *drawing) y(share float64) float64 { return d.top + d.height*(1-share) }

func (d *drawing) text(x, y float64, class, s string) {
	attr := ""
	if class != "" {
		attr = ` class="` + class + `"`
	}
	d.tag(`<text%s x="%s" y="%s">%s</text>`, attr, num(x), num(y), escape(s))
}

func (d *drawing) tag(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }
