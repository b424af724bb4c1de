package chart

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// fallback stands behind the font that the picture was laid out in: these have letters of the same
// widths.
const fallback = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// render draws p, l to the right of it if it has entries, and the title above both, and returns the
// picture.
func render(p *plot.Plot, l *plot.Legend, entries []string) ([]byte, error) {
	svg := vgsvg.New(width, height)
	all := draw.New(svg)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	inner := draw.Crop(all, margin, -margin, margin, -margin)
	title := p.Title.Text
	p.Title.Text = "" // the plot would centre it over itself alone
	inner.FillText(p.Title.TextStyle, vg.Point{X: inner.Center().X, Y: inner.Max.Y}, title)
	inner.Max.Y -= p.Title.TextStyle.Rectangle(title).Size().Y + p.Title.Padding
	right := vg.Length(0)
	for _, e := range entries {
		right = max(right, l.TextStyle.Width(" "+e)+l.ThumbnailWidth+gap)
	}
	p.Draw(draw.Crop(inner, 0, -max(right, margin), 0, 0))
	if len(entries) > 0 {
		l.Draw(draw.Crop(inner, inner.Size().X-right+gap, 0, 0, 0))
	}
	var out bytes.Buffer
	if _, err := svg.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("cannot write a chart: %w", err)
	}
	return polish(out.Bytes(), title)
}

// polish names fonts to fall back on, gives the picture its size in pixels, because not every
// viewer knows points, and a name for those who do not see it.
func polish(svg []byte, title string) ([]byte, error) {
	svg = bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte(fallback))
	svg = bytes.Replace(svg, fmt.Appendf(nil, `width="%dpt" height="%dpt"`, width, height), fmt.Appendf(nil, `width="%d" height="%d"`, width*4/3, height*4/3), 1)
	head, body, ok := bytes.Cut(svg, []byte("xlink\">\n"))
	if !ok {
		return nil, fmt.Errorf("cannot find the head of a chart")
	}
	name := "xlink\" role=\"img\">\n<title>" + html.EscapeString(strings.ReplaceAll(title, "\n", " ")) + "</title>\n"
	return append(append(head[:len(head):len(head)], name...), body...), nil
}
