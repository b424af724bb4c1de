// Package goal is how the benchmark commands evaluate: cells measured in rounds, ratios within a
// round, and goals that the ratios reach or miss.
//
// A Cell is one row of a table: a server under one load. Rounds has all cells take turns, in
// alternating order, and every turn leaves a Sample. On a shared machine only ratios of one round
// mean anything, so Ratio divides within each round and takes the median of that. A Goal is as good
// as its worst member; one that asks for nothing is reported and not evaluated.
//
// The package knows figures alone: no server, no clock, no flag. Who measures is
// bench/internal/load, and what is asked is written in the commands.
package goal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"trunkline/cmd/trunkline/loadgen/chart"
)

// Verdict is what became of a goal.
type Verdict string

// The verdicts.
const (
	Pass     Verdict = "pass"
	Moonshot Verdict = "moonshot" // far beyond what is asked
	Miss     Verdict = "MISS"
	None     Verdict = "none"     // not measured
	Reported Verdict = "reported" // measured, and nothing is asked
)

// Goal is one evaluated line. Its members are set with Add, its verdict with Evaluate.
type Goal struct {
	ID       string  `json:"goal,omitempty"`
	What     string  `json:"what"`
	Measured float64 `json:"measured"` // the worst member; 0 without any
	Must     float64 `json:"must"`     // 0: reported and not evaluated
	Moonshot float64 `json:"moonshot,omitempty"`
	AtLeast  bool    `json:"at_least"` // more is better; else less is
	Verdict  Verdict `json:"verdict"`
	// Members are what the goal is about by name, most often the medians of ratios.
	Members map[string]float64 `json:"members,omitempty"`
	// CPU is reported beside members that are ratios of requests/s: by member, the peer's CPU time
	// per request over ours, which is what the ratio would be if only the servers cost.
	CPU map[string]float64 `json:"cpu_ratios,omitempty"`
}

// Add takes one member of the goal. 0 was not measured and is left out.
func (g *Goal) Add(name string, v float64) {
	if v == 0 {
		return
	}
	if g.Members == nil {
		g.Members = map[string]float64{}
	}
	g.Members[name] = v
	worse := v > g.Measured
	if g.AtLeast {
		worse = v < g.Measured
	}
	if worse || len(g.Members) == 1 {
		g.Measured = v
	}
}

// AddCPU is Add with a ratio of CPU time that is reported beside the member, unless it was not
// measured.
func (g *Goal) AddCPU(name string, v, cpu float64) {
	g.Add(name, v)
	if v == 0 || cpu == 0 {
		return
	}
	if g.CPU == nil {
		g.CPU = map[string]float64{}
	}
	g.CPU[name] = cpu
}

// Evaluate sets the verdict.
func (g *Goal) Evaluate() {
	switch {
	case len(g.Members) == 0:
		g.Verdict = None
	case g.Must == 0:
		g.Verdict = Reported
	case g.Moonshot != 0 && g.reaches(g.Moonshot):
		g.Verdict = Moonshot
	case g.reaches(g.Must):
		g.Verdict = Pass
	default:
		g.Verdict = Miss
	}
}

func (g *Goal) reaches(bound float64) bool {
	if g.AtLeast {
		return g.Measured >= bound
	}
	return g.Measured <= bound
}

// Missed reports whether one of the goals was missed.
func Missed(goals []Goal) bool {
	return slices.ContainsFunc(goals, func(g Goal) bool { return g.Verdict == Miss })
}

// Asked is what is asked, with what is far beyond it; empty for a goal that asks for nothing.
func (g *Goal) Asked() string {
	sign := "≤ "
	if g.AtLeast {
		sign = "≥ "
	}
	switch {
	case g.Verdict == Reported:
		return ""
	case g.Moonshot == 0:
		return sign + chart.Figure(g.Must)
	}
	return sign + chart.Figure(g.Must) + " (" + chart.Figure(g.Moonshot) + ")"
}

// list is the members in the order of their names.
func (g *Goal) list() string {
	var members []string
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		member := name + " " + chart.Figure(g.Members[name])
		if cpu := g.CPU[name]; cpu > 0 {
			member += " (CPU " + chart.Figure(cpu) + ")"
		}
		members = append(members, member)
	}
	return strings.Join(members, ", ")
}

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
