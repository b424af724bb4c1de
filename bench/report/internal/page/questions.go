package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

// hotMethods is the benchmark of the hot methods through a whole session. All of its cases but the
// last one, which makes rows and ends them, are hot methods.
const hotMethods = "KernelMethod"

// questions is a table for each benchmark function, below its question.
func (b *builder) questions() string {
	q := b.set.Questions
	if q == nil {
		return notMeasured(commandOf("questions"))
	}
	var order []string
	groups := map[string][]figures.Benchmark{}
	for _, m := range q.Benchmarks {
		if m.Now == nil {
			continue // gone since the baseline
		}
		if q.Baseline == nil {
			m.Verdict = "" // everything would be new
		}
		name, _ := m.Top()
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], m)
	}
	parts := []string{baseline(q)}
	for _, name := range order {
		title := "`" + name + "`"
		if text := b.set.Asked[name]; text != "" {
			title = text + " (" + title + ")"
		}
		parts = append(parts, title, answers(groups[name]))
	}
	return strings.Join(parts, "\n\n")
}

// answers is the table of one benchmark function.
func answers(all []figures.Benchmark) string {
	t := newTable("case", ">ns/op", ">quartiles", ">B/op", ">allocs/op", "besides", "against the baseline")
	for _, m := range all {
		_, variant := m.Top()
		t.row(or(variant, "all"), figure(m.Now.Nanos), figure(m.Now.Low)+" to "+figure(m.Now.High), exact(m.Now.Bytes), exact(m.Now.Allocs),
			besides(m.Now.Extra), against(&m))
	}
	return t.String()
}

// besides is further metrics of a benchmark.
func besides(metrics map[string]float64) string {
	var list []string
	for _, unit := range slices.Sorted(maps.Keys(metrics)) {
		list = append(list, figure(metrics[unit])+" "+unit)
	}
	return strings.Join(list, ", ")
}

// against reports how a benchmark compares with the baseline: its time, and what moved of its
// memory.
func against(m *figures.Benchmark) string {
	parts := []string{m.Verdict}
	if m.Change != nil {
		parts[0] = fmt.Sprintf("%s: %.3f (%.3f to %.3f)", m.Verdict, m.Change.Ratio, m.Change.Low, m.Change.High)
	}
	for _, x := range m.Memory {
		parts = append(parts, fmt.Sprintf("%s to %s %s", exact(x.From), exact(x.To), x.Unit))
	}
	return strings.Join(parts, ", ")
}

// baseline reports what the benchmarks were compared with.
func baseline(q *figures.Questions) string {
	text := fmt.Sprintf("Medians over %d rounds of %.2g s each. ", q.Rounds, q.Benchtime)
	switch {
	case q.Baseline == nil:
		return text + "There was no baseline to compare with."
	case !q.Baseline.Measured:
		return text + fmt.Sprintf("The sources of the baseline, revision `%s` of %s, were not to be had: only memory was compared, with the figures of its own run.",
			short(q.Baseline.Revision), q.Baseline.Date)
	}
	return text + fmt.Sprintf("The baseline is revision `%s` of %s, measured in turns in the same run: the last column is the time now over the time there, with the ends "+
		"of its 95 %% interval. `unsure` is what the machine was too noisy to tell.", short(q.Baseline.Revision), q.Baseline.Date)
}

// short is a revision as people write it.
func short(revision string) string { return revision[:min(len(revision), 12)] }

// allocations evaluates the allocations of the hot methods. The bound is 0, which a goal cannot keep
// apart from none.
func (b *builder) allocations() goal.Goal {
	g := goal.Goal{ID: allocationsAim, Verdict: goal.None}
	for _, m := range b.set.Questions.Benchmarks {
		name, variant := m.Top()
		if name != hotMethods || m.Now == nil || variant == "CreateTerminate" {
			continue
		}
		if g.Members == nil {
			g.Members, g.Verdict = map[string]float64{}, goal.Pass
		}
		g.Members[variant] = m.Now.Allocs
		if m.Now.Allocs > 0 {
			g.Measured, g.Verdict = max(g.Measured, m.Now.Allocs), goal.Miss
		}
	}
	return g
}
