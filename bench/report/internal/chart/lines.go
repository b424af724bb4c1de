package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"trunkline/bench/internal/goal"
)

// Lines draws a chart without the lines in hidden; the others look as they do beside them. Colours
// are given to the names in order first. A figure of 0 was not measured and is left out.
func Lines(c goal.Chart, order []string, hidden ...string) ([]byte, error) {
	var names []string
	for _, l := range c.Lines {
		names = append(names, l.Name)
	}
	rank := ranks(order, names)
	lines := measured(c.Lines, hidden)
	if len(lines) == 0 {
		return nil, fmt.Errorf("cannot draw %s: it has no lines", c.Name)
	}
	p := ground(c.Title, c.X, c.Y)
	place := across(p, Across(c), c.X)
	upright(&p.Y, top(lines))
	grid(p)
	entries, names := legend(), nil
	for _, l := range lines {
		line, points, err := curve(l, place, rank[l.Name])
		if err != nil {
			return nil, fmt.Errorf("cannot draw %s of %s: %w", l.Name, c.Name, err)
		}
		p.Add(line, points)
		entries.Add(l.Name, line, points)
		names = append(names, l.Name)
	}
	if len(c.Lines) == 1 {
		names = nil // the title is enough
	}
	return render(p, &entries, names)
}

// measured are the lines that are not hidden, without what was not measured.
func measured(all []goal.Line, hidden []string) (lines []goal.Line) {
	for _, l := range all {
		l.Points = slices.DeleteFunc(slices.Clone(l.Points), func(p goal.Point) bool { return p.Y == 0 })
		if len(l.Points) > 0 && !slices.Contains(hidden, l.Name) {
			lines = append(lines, l)
		}
	}
	return lines
}

// Empty reports whether a chart has nothing to draw.
func Empty(c goal.Chart) bool { return len(measured(c.Lines, nil)) == 0 }

// curve is one line with its points.
func curve(l goal.Line, place map[float64]float64, rank int) (*plotter.Line, *plotter.Scatter, error) {
	at := make(plotter.XYs, len(l.Points))
	for i, pt := range l.Points {
		at[i] = plotter.XY{X: place[pt.X], Y: pt.Y}
	}
	line, points, err := plotter.NewLinePoints(at)
	if err != nil {
		return nil, nil, err
	}
	c := colours()[rank%len(colours())]
	line.Color, line.Width = c, 1.5
	if l.Name == ours {
		line.Width = 2.5
	}
	points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 3.5, Shape: shapes()[rank%len(shapes())]}
	return line, points, nil
}

// across sets the horizontal axis for the values and returns where each stands on it.
func across(p *plot.Plot, values []float64, name string) map[float64]float64 {
	place := make(map[float64]float64, len(values))
	var marks []plot.Tick
	even := len(values) == 1 || decades(values)
	for i, v := range values {
		place[v] = v
		if even {
			place[v] = float64(i)
		}
		marks = append(marks, plot.Tick{Value: place[v], Label: marker(name)(v)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(marks)
	if even {
		p.X.Min, p.X.Max = -0.4, float64(len(values))-0.6
	} else {
		p.X.Min, p.X.Max = 0, values[len(values)-1]*1.05
	}
	return place
}

// Across is where any line of a chart has a point, in order.
func Across(c goal.Chart) []float64 { return xs(measured(c.Lines, nil)) }

// Mark writes a value of a chart's horizontal axis as the chart does.
func Mark(c goal.Chart, x float64) string { return marker(c.X)(x) }

// marker is how values of an axis of that name are written.
func marker(axis string) func(float64) string {
	if strings.Contains(axis, "byte") {
		return bytesShort
	}
	return Short
}

// xs is where any of the lines has a point, in order.
func xs(lines []goal.Line) []float64 {
	at := map[float64]bool{}
	for _, l := range lines {
		for _, p := range l.Points {
			at[p.X] = true
		}
	}
	return slices.Sorted(maps.Keys(at))
}

func top(lines []goal.Line) (highest float64) {
	for _, l := range lines {
		for _, p := range l.Points {
			highest = max(highest, p.Y)
		}
	}
	return highest
}

// Outlier names the line that rises to more than factor times all others, if there is one: it would
// press them flat.
func Outlier(c goal.Chart, factor float64) (name string, ok bool) {
	if len(c.Lines) < 3 {
		return "", false
	}
	tops := slices.Clone(c.Lines)
	slices.SortStableFunc(tops, func(a, b goal.Line) int { return cmp.Compare(top([]goal.Line{b}), top([]goal.Line{a})) })
	return tops[0].Name, top(tops[:1]) > factor*top(tops[1:])
}
