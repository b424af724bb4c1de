package goal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"trunkline/cmd/trunkline/loadgen/chart"
)

// Grid is a table of a report. A cell is a string, a number or nil, which was not measured.
type Grid struct {
	Title string   `json:"title"`
	Head  []string `json:"head"` // names of the columns, with their units
	Rows  [][]any  `json:"rows"`
}

// Add appends a row.
func (g *Grid) Add(cells ...any) { g.Rows = append(g.Rows, cells) }

// texts is the head and the rows as people read them.
func (g *Grid) texts() [][]string {
	all := [][]string{g.Head}
	for _, row := range g.Rows {
		texts := make([]string, len(row))
		for i, cell := range row {
			texts[i] = Text(cell)
		}
		all = append(all, texts)
	}
	return all
}

// hasText reports whether a column has text, which stands on the left.
func (g *Grid) hasText(column int) bool {
	return slices.ContainsFunc(g.Rows, func(row []any) bool { _, text := row[column].(string); return text })
}

// Print prints the table after an empty line, its cells on the right but for text in the last one.
func (g Grid) Print(out io.Writer) {
	if g.Title != "" {
		fmt.Fprintf(out, "\n%s", g.Title)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	last := len(g.Head) - 1
	for _, row := range g.texts() {
		for i, text := range row {
			if i == last && g.hasText(i) {
				fmt.Fprint(w, "  ", text) // what no tab follows stands on the left
				continue
			}
			fmt.Fprint(w, text, "\t")
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// Markdown is the grid as a table of a page, without its title. Columns without any text stand to
// the right.
func (g Grid) Markdown() string {
	var out strings.Builder
	for n, row := range g.texts() {
		for _, text := range row {
			out.WriteString("| " + strings.ReplaceAll(text, "|", `\|`) + " ")
		}
		out.WriteString("|\n")
		if n > 0 {
			continue
		}
		for column := range g.Head {
			out.WriteString("|---")
			if len(g.Rows) > 0 && !g.hasText(column) {
				out.WriteString(":")
			}
		}
		out.WriteString("|\n")
	}
	return out.String()
}

// Text is a cell as people read it: - for nil and for a figure of 0, which were not measured.
func Text(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "-"
	case float64:
		if v == 0 {
			return "-"
		}
		return chart.Figure(v)
	}
	return fmt.Sprint(cell)
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
	table := Grid{Head: []string{"goal", "asked (moonshot)", "measured", "verdict", "what"}}
	for i := range goals {
		g := &goals[i]
		what := g.What
		if len(g.Members) > 0 {
			what += ": " + g.list()
		}
		table.Add(g.ID, g.Asked(), g.Measured, string(g.Verdict), what)
	}
	return table
}
