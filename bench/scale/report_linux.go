package main

import (
	"fmt"
	"io"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// grid is a table of the report.
type grid struct {
	Name  string     `json:"name"`
	Title string     `json:"title"` // what it shows, as a sentence
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// report is everything a run found.
type report struct {
	load.Report
	Charts []goal.Chart `json:"charts"`
	Goals  []goal.Goal  `json:"goals"`
	Tables []grid       `json:"tables"`
}

func newReport(o options) *report {
	s := load.Settings{Rounds: o.rounds, Window: o.window.Seconds(), Rows: o.rows, Loops: o.loops, Workers: 1, Spin: true}
	return &report{Report: load.Report{Machine: load.ThisMachine(), Settings: s}, Charts: []goal.Chart{}, Goals: []goal.Goal{}, Tables: []grid{}}
}

// evaluate adds a goal with its verdict.
func (r *report) evaluate(g goal.Goal) { r.Goals = append(r.Goals, goal.EvaluateAll(g)...) }

func (r *report) print(out io.Writer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(out, "%d CPUs, %s/%s %s, %s; loopback TCP, load on the same machine; %d rounds of %.1f s, medians; %d loops\n",
		m.CPUs, m.OS, m.Arch, m.Kernel, m.Go, s.Rounds, s.Window, s.Loops)
	for _, c := range r.Charts {
		printGrid(out, chartGrid(c))
	}
	for _, t := range r.Tables {
		printGrid(out, t)
	}
	fmt.Fprintln(out, "\ngoal measured  verdict   asked")
	for i := range r.Goals {
		g := &r.Goals[i]
		fmt.Fprintf(out, "%-4s %8s  %-8s  %s %g (moonshot %g)  %s%s\n", g.ID, goal.Known("%.3f", g.Measured), g.Verdict, g.Sign(), g.Must, g.Moonshot,
			g.What, g.List(": ", ", "))
	}
}

// chartGrid is a chart as a table: a row per place on the axis, a column per line.
func chartGrid(c goal.Chart) grid {
	t := grid{Title: c.Title + " (" + c.Y + ")", Head: []string{c.X}}
	at := map[float64]int{}
	for column, line := range c.Lines {
		t.Head = append(t.Head, line.Name)
		for _, p := range line.Points {
			i, ok := at[p.X]
			if !ok {
				i = len(t.Rows)
				at[p.X] = i
				t.Rows = append(t.Rows, append([]string{fmt.Sprintf("%.0f", p.X)}, dashes(len(c.Lines))...))
			}
			t.Rows[i][1+column] = figure(p.Y)
		}
	}
	return t
}

func dashes(n int) []string { return strings.Split(strings.Repeat("-", n), "") }

// figure writes v with three digits that count.
func figure(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func printGrid(out io.Writer, t grid) {
	fmt.Fprintf(out, "\n%s\n", t.Title)
	w := goal.NewTable(out)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	w.Flush()
}
