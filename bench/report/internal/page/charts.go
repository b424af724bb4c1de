package page

import (
	"fmt"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/chart"
)

// crowd is how many times higher than all others one figure may stand in a chart before there is a
// second chart without it.
const crowd = 3

// picture keeps a drawing and returns the link that shows it.
func (b *builder) picture(name, title string, svg []byte) string {
	file := name + ".svg"
	b.charts[file] = svg
	return fmt.Sprintf("![%s](%s/%s)", title, b.folder, file)
}

// without ends the title and the file name of a chart that leaves out what presses the others flat.
func without(name, title, left string) (string, string) {
	return name + "-near", strings.TrimSuffix(title, ".") + ", without " + left
}

// drawBars draws bars, and again without the one server that towers above all others.
func (b *builder) drawBars(bars chart.Bars) (string, error) {
	if bars.Empty() {
		return "", nil
	}
	svg, err := bars.SVG()
	if err != nil {
		return "", err
	}
	link := b.picture(bars.Name, bars.Title, svg)
	tallest, ok := bars.Outlier(crowd)
	if !ok {
		return link, nil
	}
	near := bars.Without(tallest)
	near.Name, near.Title = without(bars.Name, bars.Title, tallest)
	if svg, err = near.SVG(); err != nil {
		return "", err
	}
	return link + "\n\n" + b.picture(near.Name, near.Title, svg), nil
}

// drawLines draws lines, again without the one that towers above all others, and sets their figures
// below. The names in order have the colours of their places there.
func (b *builder) drawLines(c goal.Chart, order []string) (string, error) {
	if chart.Empty(c) {
		return "No figures.", nil
	}
	svg, err := chart.Lines(c, order)
	if err != nil {
		return "", err
	}
	parts := []string{b.picture(c.Name, c.Title, svg)}
	if tallest, ok := chart.Outlier(c, crowd); ok {
		near := c
		near.Name, near.Title = without(c.Name, c.Title, tallest)
		if svg, err = chart.Lines(near, order, tallest); err != nil {
			return "", err
		}
		parts = append(parts, b.picture(near.Name, near.Title, svg))
	}
	return strings.Join(append(parts, values(c)), "\n\n"), nil
}

// values is the figures of a chart: a row for each line.
func values(c goal.Chart) string {
	at := chart.Across(c)
	heads := []string{c.Y + ", by " + c.X}
	for _, x := range at {
		heads = append(heads, ">"+chart.Mark(c, x))
	}
	t := newTable(heads...)
	for _, l := range c.Lines {
		row := make([]string, len(at)+1)
		row[0] = l.Name
		for i, x := range at {
			row[i+1] = "-"
			for _, p := range l.Points {
				if p.X == x && p.Y != 0 {
					row[i+1] = figure(p.Y)
				}
			}
		}
		t.row(row...)
	}
	return t.String()
}
