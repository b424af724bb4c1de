package chart

import (
	"image/color"
	"slices"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of a picture in points: a page of 800 pixels shows it whole.
const (
	width, height = 600, 330
	margin        = 12 // around everything
	gap           = 14 // between the plot and the legend
	titleSize     = 13
	labelSize     = 11
	tickSize      = 10
	titleLetters  = 84 // of a title's line
)

// ours is the name of the line or bar that a reader looks for: it has the first colour and the
// thickest line everywhere.
const ours = "trunkline"

// colours differ for people who see few of them, and in grey (Okabe and Ito); the first is ours.
func colours() []color.Color {
	return []color.Color{rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xe69f00), rgb(0x555555), rgb(0x56b4e9), rgb(0x8c6d31)}
}

// shapes separate lines where colours do not.
func shapes() []draw.GlyphDrawer {
	return []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.SquareGlyph{}, draw.RingGlyph{},
		draw.PlusGlyph{}, draw.CrossGlyph{}}
}

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

func grey(v uint8) color.Color { return color.Gray{Y: v} }

// ranks gives every name its colour's number: ours the first if it is there, the others in their
// order. What order names comes before the rest, whether it is there or not, so that a name can
// have one colour in many charts.
func ranks(order, names []string) map[string]int {
	names = slices.Concat(order, names)
	rank, next := map[string]int{}, 0
	if slices.Contains(names, ours) {
		rank[ours], next = 0, 1
	}
	for _, n := range names {
		if _, ok := rank[n]; !ok {
			rank[n] = next
			next++
		}
	}
	return rank
}

func sans(size vg.Length, weight xfont.Weight) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size, Weight: weight}
}

// style is text in the pictures' own font.
func style(size vg.Length, weight xfont.Weight, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{Color: grey(0x22), Font: sans(size, weight), XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}

// ground is a plot without figures: title, axes and their lines.
func ground(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = wrap(title, titleLetters)
	p.Title.TextStyle = style(titleSize, xfont.WeightBold, draw.XCenter, draw.YTop)
	p.Title.Padding = 10
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle = style(labelSize, xfont.WeightNormal, draw.XCenter, draw.YBottom)
		a.Label.Padding = 6
		a.LineStyle.Color, a.Tick.LineStyle.Color = grey(0x66), grey(0x66)
		a.Padding, a.Tick.Length = 0, 4
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Tick.Label = style(tickSize, xfont.WeightNormal, draw.XCenter, draw.YTop)
	p.Y.Tick.Label = style(tickSize, xfont.WeightNormal, draw.XRight, draw.YCenter)
	return p
}

// grid draws the lines of the upright axis behind the figures.
func grid(p *plot.Plot) {
	g := plotter.NewGrid()
	g.Vertical.Color = nil
	g.Horizontal.Color, g.Horizontal.Width = grey(0xcc), 0.5
	p.Add(g)
}

// legend is an empty legend that reads from the left.
func legend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle = style(labelSize, xfont.WeightNormal, draw.XLeft, draw.YBottom)
	l.Top, l.Left, l.ThumbnailWidth, l.Padding = true, true, 22, 4
	return l
}
