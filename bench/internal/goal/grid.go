package goal

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Grid is a table of a report. A cell is a string, a number or nil, which was not measured.
type Grid struct {
	Title string   `json:"title"`
	Head  []string `json:"head"` // names of the columns, with their units
	Rows  [][]any  `json:"rows"`
}

// Add appends a row.
func (g *Grid) Add(cells ...any) { g.Rows = append(g.Rows, cells) }

// Print prints the table after an empty line, its cells on the right; a last column of text stands
// on the left.
func (g Grid) Print(out io.Writer) {
	if g.Title != "" {
		fmt.Fprintf(out, "\n%s", g.Title)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	last := len(g.Head) - 1
	prose := len(g.Rows) > 0
	for _, row := range g.Rows {
		_, text := row[last].(string)
		prose = prose && text
	}
	line := func(i int, cell string) {
		if i == last && prose {
			fmt.Fprint(w, "  ", cell)
		} else {
			fmt.Fprint(w, cell, "\t")
		}
	}
	for i, name := range g.Head {
		line(i, name)
	}
	fmt.Fprintln(w)
	for _, row := range g.Rows {
		for i, cell := range row {
			line(i, Text(cell))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// Text is a cell as people read it: three significant digits of what is no whole number, - for nil
// and for a figure of 0 that was not measured.
func Text(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "-"
	case float64:
		return figure(v)
	default:
		return fmt.Sprint(v)
	}
}

// figure is v with three significant digits, at most three of them behind the point; - for 0, which
// was not measured.
func figure(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v >= 100 || v <= -100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10 || v <= -10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1 || v <= -1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// cells is the table of cells: a row of medians for each.
func cells(list []Summary) Grid {
	g := Grid{Head: []string{"server", "method", "via", "connections", "in flight", "requests/s", "CPU µs/request", "p50 µs", "p99 µs", "p99.9 µs", "RSS MiB", "peak MiB"}}
	for _, s := range list {
		m := s.Median
		g.Add(s.Server, s.Method, s.Via, s.Conns, s.Depth, m.PerSec, m.CPU/1e3, m.P50, m.P99, m.P999, MiB(m.RSS), MiB(m.Peak))
	}
	return g
}

// verdicts is the table of goals.
func verdicts(goals []Goal) Grid {
	g := Grid{Head: []string{"goal", "asked", "moonshot", "measured", "verdict", "what"}}
	for i := range goals {
		x := &goals[i]
		asked := ""
		if x.Must != 0 {
			asked = x.Sign() + " " + figure(x.Must)
		}
		g.Add(x.ID, asked, x.Moonshot, x.Measured, string(x.Verdict), x.What+x.List(": ", ", "))
	}
	return g
}
