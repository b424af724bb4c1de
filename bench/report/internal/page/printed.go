package page

import (
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

// printed shows what the command of one section printed, or else the cells and goals of its run.
func (b *builder) printed(name string) string {
	run, outputs := b.set.Runs[name], b.set.Outputs[name]
	if len(outputs) == 0 && run == nil {
		return notMeasured(commandOf(name))
	}
	var parts []string
	for _, o := range outputs {
		parts = append(parts, origin(o, name, run), fence(o.Text))
	}
	if len(outputs) == 0 {
		parts = append(parts, origin(figures.Output{}, name, run), cells(run), evaluated(run.Goals))
	}
	return strings.Join(parts, "\n\n")
}

// origin is where an output comes from: as its file has it, and for the rest as the run's file has
// it.
func origin(o figures.Output, name string, run *figures.Run) string {
	var parts []string
	if run != nil {
		o.Date, o.Revision = or(o.Date, run.Machine.Date), or(o.Revision, run.Machine.Revision)
	}
	if o.Date != "" {
		parts = append(parts, o.Date)
	}
	if o.Revision != "" {
		parts = append(parts, "revision "+code(o.Revision))
	}
	return strings.Join(append([]string{code(or(o.Command, commandOf(name)))}, parts...), ", ") + ":"
}

// cells is the table that the commands print of their cells.
func cells(run *figures.Run) string {
	if len(run.Cells) == 0 {
		return ""
	}
	t := goal.Table{Method: "method", P999: true}
	for _, c := range run.Cells {
		t.Via = t.Via || c.Via != ""
	}
	var out strings.Builder
	t.Print(&out, run.Cells)
	return fence(strings.Trim(out.String(), "\n"))
}

// evaluated is a table of goals that have no number on the page's list.
func evaluated(goals []goal.Goal) string {
	if len(goals) == 0 {
		return ""
	}
	t := newTable("goal", "asked", "measured", "verdict")
	for _, g := range goals {
		t.row(g.What, asked(&g), measured(&g), verdict(g.Verdict))
	}
	return t.String()
}
