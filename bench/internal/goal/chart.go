package goal

import (
	"slices"

	"trunkline/cmd/trunkline/loadgen/chart"
)

// Chart is figures over something that grows, ready to be drawn: what costs how much, as
// connections, rows or payloads grow. Axes name their units.
type Chart struct {
	Name  string `json:"name"`  // of its file, without an ending: "rows"
	Title string `json:"title"` // what it shows, as a sentence
	X     string `json:"x"`     // the name of the axis with its unit: "rows", "bytes of payload"
	Y     string `json:"y"`
	Lines []Line `json:"lines"`
}

// Line is one line of a chart.
type Line struct {
	Name   string        `json:"name"`
	Points []chart.Point `json:"points"` // most often medians over rounds; X grows
}

// Add appends a point to the chart's line of that name, and begins the line if there is none.
// Points have to come in the order of X.
func (c *Chart) Add(line string, x, y float64) {
	i := slices.IndexFunc(c.Lines, func(l Line) bool { return l.Name == line })
	if i < 0 {
		i, c.Lines = len(c.Lines), append(c.Lines, Line{Name: line})
	}
	c.Lines[i].Points = append(c.Lines[i].Points, chart.Point{X: x, Y: y})
}

// grid is the chart as a table: a row per place on the axis, in the order in which they first came,
// and a column per line.
func (c Chart) grid() Grid {
	g := Grid{Title: c.Title + " (" + c.Y + ")", Head: []string{c.X}}
	at := map[float64][]any{}
	for column, line := range c.Lines {
		g.Head = append(g.Head, line.Name)
		for _, p := range line.Points {
			if at[p.X] == nil {
				at[p.X] = make([]any, 1+len(c.Lines))
				at[p.X][0] = int64(p.X)
				g.Add(at[p.X]...)
			}
			at[p.X][1+column] = p.Y
		}
	}
	return g
}
