package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"

	"trunkline/cmd/trunkline/loadgen/chart"
)

// fewMembers is how many members of a goal are shown; of more, the worst one.
const fewMembers = 3

// fewRows is how many missed goals of a part have a row each, where they have no names.
const fewRows = 3

// outcome counts the goals of a part by what became of them, or its faults.
func outcome(r *goal.Report) string {
	if n := len(r.Faults); n > 0 {
		text := "**failed**: " + strings.Join(strings.Fields(r.Faults[0]), " ")
		if n > 1 {
			text += fmt.Sprintf(" (the first of %d faults)", n)
		}
		return text
	}
	if len(r.Goals) == 0 {
		return "no faults"
	}
	count := map[string]int{}
	for _, g := range r.Goals {
		count[verdict(g.Verdict)]++
	}
	var list []string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%s: %d", v, count[v]))
	}
	return strings.Join(list, ", ")
}

// key is what a goal is called: its own name, or that of its part.
func key(r *goal.Report, g *goal.Goal) string { return cmp.Or(g.ID, r.Part) }

// goals is the table of all goals: those with a name in the order of their names, then those of the
// parts, where all with the same verdict share a row unless a few are missed.
func (b *builder) goals() string {
	var named, others [][]any
	for _, r := range b.all() {
		shared := map[string][]*goal.Goal{}
		for i := range r.Goals {
			g := &r.Goals[i]
			if g.ID != "" {
				named = append(named, cells(r, g))
				continue
			}
			shared[verdict(g.Verdict)] = append(shared[verdict(g.Verdict)], g)
		}
		for _, v := range slices.Sorted(maps.Keys(shared)) {
			if len(shared[v]) == 1 || v == verdict(goal.Miss) && len(shared[v]) <= fewRows {
				for _, g := range shared[v] {
					others = append(others, cells(r, g))
				}
				continue
			}
			var list []string
			for _, g := range shared[v] {
				text := g.What + ": " + worst(g)
				if bound := g.Asked(); bound != "" {
					text += " (" + bound + ")"
				}
				list = append(list, text)
			}
			others = append(others, []any{r.Part, strings.Join(list, "<br>"), "", "", v})
		}
	}
	if len(named)+len(others) == 0 {
		return "No goal was measured."
	}
	slices.SortStableFunc(named, func(a, b []any) int { return byName(a[0].(string), b[0].(string)) })
	return goal.Grid{Head: []string{"goal", "what", "asked (moonshot)", "measured", "verdict"},
		Rows: append(named, others...)}.Markdown()
}

// cells is the row of a goal.
func cells(r *goal.Report, g *goal.Goal) []any {
	return []any{key(r, g), g.What, g.Asked(), measured(g), verdict(g.Verdict)}
}

// measured is the worst member of a goal, with all of them if they are few.
func measured(g *goal.Goal) string {
	names := slices.Sorted(maps.Keys(g.Members))
	switch {
	case len(names) == 0:
		return worst(g)
	case len(names) == 1:
		return worst(g) + " (" + names[0] + ")"
	case len(names) > fewMembers:
		i := slices.IndexFunc(names, func(n string) bool { return g.Members[n] == g.Measured })
		return fmt.Sprintf("%s (%s, the worst of %d)", worst(g), names[max(i, 0)], len(names))
	}
	for i, n := range names {
		names[i] = n + " " + chart.Figure(g.Members[n])
	}
	return worst(g) + " (" + strings.Join(names, ", ") + ")"
}

// worst is the worst member of a goal, a dash for one that was not measured.
func worst(g *goal.Goal) string {
	if g.Verdict == goal.None {
		return "-"
	}
	return "**" + chart.Figure(g.Measured) + "**"
}

// verdict is a verdict in the page's words.
func verdict(v goal.Verdict) string {
	switch v {
	case goal.Pass, goal.Moonshot:
		return "holds"
	case goal.Miss:
		return "**missed**"
	case goal.Reported:
		return "reported"
	}
	return "not measured"
}

// misses are the lines of the note on goals that are missed, and which missed ones have none. A line
// begins with the names of what it explains.
func (b *builder) misses() string {
	missed := map[string]bool{}
	for _, r := range b.all() {
		for i := range r.Goals {
			if r.Goals[i].Verdict == goal.Miss {
				missed[key(r, &r.Goals[i])] = true
			}
		}
	}
	unexplained, text := maps.Clone(missed), ""
	for line := range strings.Lines(b.missed) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "- **"), "**")
		explains := false
		for _, name := range strings.Split(names, ", ") {
			explains = explains || missed[name]
			delete(unexplained, name)
		}
		if explains {
			text += line
		}
	}
	if len(unexplained) > 0 {
		text += "- Not explained yet: " + strings.Join(slices.SortedFunc(maps.Keys(unexplained), byName), ", ") + ".\n"
	}
	return text
}

// byName orders G2 before G10.
func byName(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
