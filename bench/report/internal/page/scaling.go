package page

import (
	"slices"
	"strings"

	"trunkline/bench/report/internal/figures"
)

// tuningTable is the name of the table of settings that were tried. All others show how costs grow.
const tuningTable = "tuning"

// scaling draws how the cost of a request grows: with connections and depth, as measured beside the
// peers, then with rows, payloads and subscribers. A table stands below the chart of its name, and
// one without a chart at the end.
func (b *builder) scaling() (string, error) {
	var parts []string
	for _, name := range []string{"peers", "scale"} {
		run := b.set.Runs[name]
		if run == nil || len(run.Charts)+len(run.Tables) == 0 {
			parts = append(parts, notMeasured(commandOf(name)))
			continue
		}
		var order []string
		if name == "peers" {
			order = list(run.Cells).servers() // each has one colour in all charts
		}
		shown := []string{tuningTable}
		for _, c := range run.Charts {
			part, err := b.drawLines(c, order)
			if err != nil {
				return "", err
			}
			parts = append(parts, "### "+strings.TrimSuffix(c.Title, "."), part, tables(run, func(name string) bool { return name == c.Name }))
			shown = append(shown, c.Name)
		}
		parts = append(parts, tables(run, func(name string) bool { return !slices.Contains(shown, name) }))
	}
	return strings.Join(parts, "\n\n"), nil
}

// tuning is the table of what was tried.
func (b *builder) tuning() string {
	run := b.set.Runs["scale"]
	if run == nil {
		return notMeasured(commandOf("scale"))
	}
	return or(tables(run, func(name string) bool { return name == tuningTable }), notMeasured(commandOf("scale")))
}

// tables are those of a run that are wanted, each below its title.
func tables(run *figures.Run, wanted func(name string) bool) string {
	var parts []string
	for _, t := range run.Tables {
		if wanted(t.Name) {
			parts = append(parts, strings.TrimSuffix(t.Title, ".")+":", textTable(t))
		}
	}
	return strings.Join(parts, "\n\n")
}

func textTable(t figures.Table) string {
	heads := slices.Clone(t.Head)
	for i := range heads {
		if i > 0 && figuresOnly(t.Rows, i) {
			heads[i] = ">" + heads[i]
		}
	}
	out := newTable(heads...)
	for _, r := range t.Rows {
		out.row(r...)
	}
	return out.String()
}

// figuresOnly reports whether a column of a table has nothing but figures and dashes.
func figuresOnly(rows [][]string, column int) bool {
	return !slices.ContainsFunc(rows, func(r []string) bool {
		return column < len(r) && strings.Trim(r[column], "0123456789.,-% ") != ""
	})
}
