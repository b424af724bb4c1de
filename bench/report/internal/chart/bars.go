package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"trunkline/bench/internal/goal"
)

// Bars is figures side by side: for each name, one bar of each series.
type Bars struct {
	Name  string // of its file, without an ending
	Title string
	Y     string // the axis of the figures with its unit
	Names []string
	// Series are kept apart by colour. One that stands alone needs no name.
	Series []Series
}

// Series is one figure for each of the names; 0 was not measured and has no bar.
type Series struct {
	Name   string
	Values []float64
}

// SVG draws the bars. A single series has its values written above the bars.
func (b Bars) SVG() ([]byte, error) {
	if len(b.Names) == 0 || len(b.Series) == 0 {
		return nil, fmt.Errorf("cannot draw %s: it has no bars", b.Name)
	}
	p := ground(b.Title, "", b.Y)
	upright(&p.Y, b.top())
	p.X.Min, p.X.Max = -0.6, float64(len(b.Names))-0.4
	p.X.Tick.Marker, p.X.Tick.Length = b.marks(), 3
	p.X.Tick.LineStyle.Width = 0
	grid(p)
	thick := vg.Length(400) / vg.Length(len(b.Names)*(len(b.Series)+1))
	thick = min(thick, 40)
	if len(b.Series) == 1 {
		return b.alone(p, thick)
	}
	entries, names := legend(), []string(nil)
	for i, s := range b.Series {
		offset := thick * vg.Length(float64(i)-float64(len(b.Series)-1)/2)
		bars, err := stand(p, s.Values, thick, offset, colours()[i%len(colours())])
		if err != nil {
			return nil, fmt.Errorf("cannot draw %s: %w", b.Name, err)
		}
		entries.Add(s.Name, bars)
		names = append(names, s.Name)
	}
	return render(p, &entries, names)
}

// Empty reports whether nothing was measured.
func (b Bars) Empty() bool { return b.top() == 0 }

// Outlier names the bar that stands more than factor times as high as those of all other names, if
// there is one: it presses them flat.
func (b Bars) Outlier(factor float64) (name string, ok bool) {
	c := goal.Chart{}
	for _, s := range b.Series {
		for i, v := range s.Values {
			c.Add(b.Names[i], 0, v)
		}
	}
	return Outlier(c, factor)
}

// Without is the bars without those of one name.
func (b Bars) Without(name string) Bars {
	at := slices.Index(b.Names, name)
	if at < 0 {
		return b
	}
	b.Names, b.Series = slices.Delete(slices.Clone(b.Names), at, at+1), slices.Clone(b.Series)
	for i := range b.Series {
		b.Series[i].Values = slices.Delete(slices.Clone(b.Series[i].Values), at, at+1)
	}
	return b
}

// alone draws the only series: our bar in our colour, the others in grey, the figures above them.
func (b Bars) alone(p *plot.Plot, thick vg.Length) ([]byte, error) {
	mine, others := make([]float64, len(b.Names)), slices.Clone(b.Series[0].Values)
	if i := slices.Index(b.Names, ours); i >= 0 {
		mine[i], others[i] = others[i], 0
	}
	_, err := stand(p, others, thick, 0, grey(0x99))
	if err == nil {
		_, err = stand(p, mine, thick, 0, colours()[0])
	}
	if err == nil {
		err = b.write(p)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot draw %s: %w", b.Name, err)
	}
	none := legend()
	return render(p, &none, nil)
}

// stand adds one series to the plot.
func stand(p *plot.Plot, values []float64, thick, offset vg.Length, c color.Color) (*plotter.BarChart, error) {
	bars, err := plotter.NewBarChart(plotter.Values(values), thick)
	if err != nil {
		return nil, err
	}
	bars.Color, bars.LineStyle.Width, bars.Offset = c, 0, offset
	p.Add(bars)
	return bars, nil
}

// top is the highest bar, with room for a figure above it if one is written there.
func (b Bars) top() (highest float64) {
	for _, s := range b.Series {
		for _, v := range s.Values {
			highest = max(highest, v)
		}
	}
	if len(b.Series) == 1 {
		highest *= 1.08
	}
	return highest
}

// marks are the names below the bars, on two lines where there is a space.
func (b Bars) marks() plot.ConstantTicks {
	var marks plot.ConstantTicks
	for i, n := range b.Names {
		marks = append(marks, plot.Tick{Value: float64(i), Label: strings.Replace(n, " ", "\n", 1)})
	}
	return marks
}

// write puts the figures above the bars of the only series.
func (b Bars) write(p *plot.Plot) error {
	at := plotter.XYLabels{}
	for i, v := range b.Series[0].Values {
		if v > 0 {
			at.XYs = append(at.XYs, plotter.XY{X: float64(i), Y: v})
			at.Labels = append(at.Labels, digits(v))
		}
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i] = style(tickSize, xfont.WeightNormal, draw.XCenter, draw.YBottom)
	}
	labels.Offset = vg.Point{Y: 3}
	p.Add(labels)
	return nil
}
