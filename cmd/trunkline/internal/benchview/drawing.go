package benchview

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/trunkline/loadgen"
)

// The places of a picture, in pixels.
const (
	svgWidth   = 800.0
	plotLeft   = 76.0
	plotRight  = svgWidth - 28
	plotHeight = 150.0
	headHeight = 78.0
	titleSpace = 50.0 // above a plot: its title, legend and unit
	axisSpace  = 52.0 // below a plot: ticks and the name of the axis
	noteHeight = 18.0
	headCells  = 96 // of a line of text
)

// svgStyle are the colours of both themes, written out for each: not every program that shows SVG
// knows variables. Lines differ in dash too, for readers who do not see the colours apart.
const svgStyle = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.h1{font-size:17px;font-weight:600}.h2{font-size:14px;font-weight:600}.mid{text-anchor:middle}.end{text-anchor:end}
.line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.due{stroke-dasharray:2 4}.failed{stroke-dasharray:6 3}.p99,.max{stroke-dasharray:8 4}
.bg{fill:#fff}text{fill:#1f2328}.tick,.soft{fill:#59636e}.grid{stroke:#d8dee4}.base{stroke:#59636e}.bar{fill:#0969da}
.due{stroke:#6e7781}.done{stroke:#1a7f37}.failed,.max{stroke:#cf222e}.p50{stroke:#0969da}.p99{stroke:#8250df}.p999{stroke:#9a6700}
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}text{fill:#e6edf3}.tick,.soft{fill:#9198a1}.grid{stroke:#30363d}.base{stroke:#9198a1}.bar{fill:#58a6ff}
.due{stroke:#9198a1}.done{stroke:#3fb950}.failed,.max{stroke:#ff7b72}.p50{stroke:#58a6ff}.p99{stroke:#bc8cff}.p999{stroke:#e3b341}
}
</style>
`

// drawing is a picture that grows downwards, one panel below the other.
type drawing struct {
	title string
	b     strings.Builder
	top   float64 // of the plot that is being drawn
}

func newDrawing(title string) *drawing { return &drawing{title: title, top: headHeight + titleSpace} }

func (d *drawing) head(lines ...string) {
	d.text(20, 30, "h1", d.title)
	for i, s := range lines {
		d.text(20, 50+18*float64(i), "soft", s)
	}
}

// panel draws the frame of a plot: title, grid and the axis of values.
func (d *drawing) panel(title string, y axis) {
	d.text(plotLeft, d.top-28, "h2", title)
	d.text(plotLeft, d.top-8, "tick", y.unit)
	for _, v := range y.ticks() {
		at := d.y(v / y.top)
		class := "grid"
		if v == 0 {
			class = "base"
		}
		d.tag(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(plotLeft), num(at), num(plotRight), num(at))
		d.text(plotLeft-8, at+4, "tick end", y.label(v))
	}
}

// overTime draws the lines of c from the start of measuring to end.
func (d *drawing) overTime(c chart, end time.Duration) {
	y, x := c.axis(), timeAxis(end)
	d.panel(c.title, y)
	for _, v := range x.ticks() {
		d.text(plotLeft+(plotRight-plotLeft)*v/x.top, d.top+plotHeight+18, "tick mid", x.label(v))
	}
	d.text((plotLeft+plotRight)/2, d.top+plotHeight+36, "tick mid", x.unit+" since the start of measuring")
	at, visible := plotRight, 0
	for i := len(c.lines) - 1; i >= 0; i-- {
		at = d.legend(at, &c.lines[i])
	}
	for i := range c.lines {
		visible += d.series(&c.lines[i], x, y)
	}
	if visible == 0 {
		d.empty()
	}
	d.next()
}

// legend names a line, left of right; it returns where the next name may end.
func (d *drawing) legend(right float64, s *series) float64 {
	d.text(right, d.top-28, "end", s.name)
	right -= 8*float64(cells(s.name)) + 6
	d.tag(`<path class="line %s" d="M%s %sh26"/>`, s.class, num(right-26), num(d.top-32))
	return right - 26 - 18
}

// series draws a line, broken where there is no value; a point alone is a dot. It returns how many
// points it drew.
func (d *drawing) series(s *series, x, y axis) int {
	var path strings.Builder
	n, pen := 0, false
	for i, p := range s.points {
		if p.none {
			pen = false
			continue
		}
		n++
		at := num(plotLeft+(plotRight-plotLeft)*x.at(float64(p.at))) + " " + num(d.y(y.at(p.v)))
		switch alone := !pen && (i+1 == len(s.points) || s.points[i+1].none); {
		case alone:
			path.WriteString("M" + at + "h.01")
		case pen:
			path.WriteString("L" + at)
		default:
			path.WriteString("M" + at)
		}
		pen = true
	}
	if n > 0 {
		d.tag(`<path class="line %s" d="%s"/>`, s.class, path.String())
	}
	return n
}

// column draws a bar of a height between 0 and 1 with its value above.
func (d *drawing) column(x, width, height float64, label string) {
	top := d.y(height)
	d.tag(`<rect class="bar" x="%s" y="%s" width="%s" height="%s"/>`, num(x-width/2), num(top), num(width), num(d.top+plotHeight-top))
	d.text(x, top-5, "mid", label)
}

func (d *drawing) empty() {
	d.text((plotLeft+plotRight)/2, d.top+plotHeight/2, "soft mid", "nothing answered")
}

// next goes on below the plot.
func (d *drawing) next() { d.top += plotHeight + axisSpace + titleSpace }

// notes are the sentences without which the picture would be misread.
func (d *drawing) notes(r *loadgen.Result) {
	d.top -= titleSpace
	for _, s := range remarks(r, summaryCells) {
		d.top += noteHeight
		d.text(20, d.top, "", s)
	}
}

// end returns the whole picture.
func (d *drawing) end() string {
	height := num(d.top + 20)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+"\n<title>%s</title>\n%s"+
		`<rect class="bg" width="%s" height="%s"/>`+"\n%s</svg>\n",
		num(svgWidth), height, num(svgWidth), height, escape("Load on "+d.title), svgStyle, num(svgWidth), height, d.b.String())
}

// y is the place of a share of the height of the plot.
func (d *drawing) y(share float64) float64 { return d.top + plotHeight*(1-min(max(share, 0), 1)) }

func (d *drawing) text(x, y float64, class, s string) {
	attr := ""
	if class != "" {
		attr = ` class="` + class + `"`
	}
	d.tag(`<text%s x="%s" y="%s">%s</text>`, attr, num(x), num(y), escape(s))
}

func (d *drawing) tag(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// num is a place in pixels, to a tenth.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// axis is linear and begins at zero: its ticks are multiples of step up to top, in unit; one unit
// is per of what is drawn.
type axis struct {
	per, step, top float64
	unit           string
}

// newAxis returns an axis that holds values up to most, in some ticks steps of 1, 2 or 5 times a
// power of ten.
func newAxis(most, per float64, unit string, ticks int) axis {
	most /= per
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	raw := most / float64(ticks)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= raw*(1-1e-9) {
			step *= m
			break
		}
	}
	return axis{per: per, step: step, top: step * math.Ceil(most/step*(1-1e-9)), unit: unit}
}

// latencyAxis holds latencies up to most nanoseconds, in the unit in which most is short.
func latencyAxis(most float64) axis {
	switch {
	case most < 1e6:
		return newAxis(most, 1e3, "microseconds", 4)
	case most < 1e9:
		return newAxis(most, 1e6, "milliseconds", 4)
	}
	return newAxis(most, 1e9, "seconds", 4)
}

// timeAxis goes to the end of a run exactly, so that the last point stands at the edge; its ticks
// are round.
func timeAxis(end time.Duration) axis {
	per, unit := time.Second, "seconds"
	switch {
	case end > 5*time.Hour:
		per, unit = time.Hour, "hours"
	case end > 5*time.Minute:
		per, unit = time.Minute, "minutes"
	}
	a := newAxis(float64(end), float64(per), unit, 8)
	if end > 0 {
		a.top = float64(end) / float64(per)
	}
	return a
}

// at is where v lies between 0 and top, as a share of the length of the axis.
func (a axis) at(v float64) float64 { return v / a.per / a.top }

// ticks are the multiples of step from 0 to top, in unit.
func (a axis) ticks() []float64 {
	var out []float64
	for i := 0; float64(i)*a.step <= a.top*(1+1e-9) && i <= 20; i++ {
		out = append(out, float64(i)*a.step)
	}
	return out
}

// label is a tick as text: no more decimals than the step has, thousands apart.
func (a axis) label(v float64) string {
	if a.step >= 1 {
		return countText(whole(v))
	}
	digits := int(math.Ceil(-math.Log10(a.step) - 1e-9))
	return strconv.FormatFloat(v, 'f', digits, 64)
}
