package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"trunkline/bench/internal/goal"
	"trunkline/cmd/trunkline/loadgen/chart"
)

const (
	ours = "trunkline" // the server that a reader looks for
	bare = "baregnet"  // the server that only answers
	// paced ends the method of cells in which servers get requests at one rate instead of as many as
	// they take.
	paced = " paced"
	// fullConns and fullDepth are the load at which servers are compared.
	fullConns, fullDepth = 64, 64
	// mostMovers is how many of the steps that moved are shown.
	mostMovers = 5
)

// peers is all servers at full depth, with charts of their costs.
func (b *builder) peers() string {
	r := b.Set["peers"]
	if r == nil {
		return notMeasured("peers")
	}
	full := slices.DeleteFunc(slices.Clone(r.Cells), func(c goal.Summary) bool {
		return c.Conns != fullConns || c.Depth != fullDepth || strings.HasSuffix(c.Method, paced)
	})
	slices.SortStableFunc(full, func(a, b goal.Summary) int { return cmp.Compare(b.Median.CPU, a.Median.CPU) })
	t := goal.Grid{Head: []string{"server", "method", "requests/s", "CPU µs/request", "CPU / " + bare, "p50 µs", "p99 µs",
		"p99.9 µs", "RSS MiB"}}
	for _, c := range full {
		m := c.Median
		t.Add(c.Server, c.Method, m.PerSec, m.CPU/1e3, overBare(r, c.Cell), m.P50, m.P99, m.P999, goal.MiB(m.RSS))
	}
	parts := []string{fmt.Sprintf("%d connections, %d requests in flight on each:", fullConns, fullDepth), t.Markdown()}
	cpu, latency := chart.Bars{}, []chart.Bars{{Name: "p50", Style: chart.Blue}, {Name: "p99", Style: chart.Violet}, {Name: "p99.9", Style: chart.Amber}}
	var servers []string
	for _, name := range order(r) {
		deep, one := main(r, name, fullDepth), main(r, name, 1)
		if deep == nil || one == nil {
			continue
		}
		servers = append(servers, name)
		cpu.Values = append(cpu.Values, deep.Median.CPU/1e3)
		for i, v := range []float64{one.Median.P50, one.Median.P99, one.Median.P999} {
			latency[i].Values = append(latency[i].Values, v)
		}
	}
	if len(servers) > 0 {
		parts = append(parts,
			b.picture("peers-cpu", fmt.Sprintf("Server CPU per request, %d connections × %d in flight", fullConns, fullDepth),
				chart.Panel{Names: servers, Ours: ours, Bars: []chart.Bars{cpu}, Y: chart.Axis{Name: "server CPU µs per request", Kind: chart.Ranging}}),
			b.picture("peers-latency", fmt.Sprintf("Latency, %d connections × 1 in flight", fullConns),
				chart.Panel{Names: servers, Bars: latency, Y: chart.Axis{Name: "µs from request to reply", Kind: chart.Ranging}}))
	}
	return strings.Join(parts, "\n\n")
}

// overBare is the ratio of CPU time to the bare server's under the same load: with the same method,
// or with the first that it has there.
func overBare(r *goal.Report, c goal.Cell) float64 {
	below := c
	below.Server = bare
	ratio := r.Ratio(c, below, goal.CPU)
	if other := main(r, bare, c.Depth); ratio == 0 && other != nil {
		ratio = r.Ratio(c, other.Cell, goal.CPU)
	}
	return ratio
}

// order is the servers of a report as they first came.
func order(r *goal.Report) (names []string) {
	for _, c := range r.Cells {
		if !slices.Contains(names, c.Server) {
			names = append(names, c.Server)
		}
	}
	return names
}

// main is the first cell of a server at full width and some depth; nil without one.
func main(r *goal.Report, server string, depth int) *goal.Summary {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Server == server && c.Conns == fullConns && c.Depth == depth && !strings.HasSuffix(c.Method, paced) {
			return c
		}
	}
	return nil
}

// tables are the first n tables of a part.
func (b *builder) tables(name string, n int) string {
	r := b.Set[name]
	if r == nil || len(r.Tables) == 0 {
		return notMeasured(name)
	}
	var parts []string
	for _, g := range r.Tables[:min(n, len(r.Tables))] {
		parts = append(parts, sentence(g.Title)+".", g.Markdown())
	}
	return strings.Join(parts, "\n\n")
}

// sentence begins with a capital letter.
func sentence(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + s[n:]
}

// scaling is the charts of all parts, each with a line of its figures.
func (b *builder) scaling() string {
	var parts []string
	for _, r := range b.all() {
		for _, c := range r.Charts {
			if link := b.growth(c, order(r)); link != "" {
				parts = append(parts, link)
			}
		}
	}
	return strings.Join(parts, "\n\n")
}

// growth draws a chart. Servers have one style in all charts of a part, ours the first.
func (b *builder) growth(c goal.Chart, servers []string) string {
	p := chart.Panel{X: chart.Axis{Name: c.X, Kind: chart.Sizes}, Y: chart.Axis{Name: c.Y, Kind: chart.Ranging}, Ours: ours}
	if strings.Contains(c.X, "byte") {
		p.X.Kind = chart.ByteSizes
	}
	var names []string // each has the style of its place
	for _, l := range c.Lines {
		names = append(names, l.Name)
	}
	if slices.Contains(names, ours) {
		names = append(append([]string{ours}, slices.DeleteFunc(servers, func(n string) bool { return n == ours })...), names...)
	}
	var ends []string
	for _, l := range c.Lines {
		line := chart.Line{Name: l.Name, Style: chart.Style(slices.Index(names, l.Name))}
		line.Points = slices.DeleteFunc(slices.Clone(l.Points), func(p chart.Point) bool { return p.Y <= 0 })
		if n := len(line.Points); n > 0 {
			p.Lines = append(p.Lines, line)
			ends = append(ends, fmt.Sprintf("%s %s → %s", l.Name, chart.Figure(line.Points[0].Y), chart.Figure(line.Points[n-1].Y)))
		}
	}
	if len(p.Lines) == 0 {
		return ""
	}
	if len(p.Lines) == 1 {
		p.Lines[0].Name = "" // the title is enough
	}
	return b.picture(c.Name, strings.TrimSuffix(c.Title, "."), p) + "<br>" + c.Y + ": " + strings.Join(ends, "; ")
}

// picture draws a panel and returns the link that shows it.
func (b *builder) picture(name, title string, p chart.Panel) string {
	all := chart.Picture{Title: title, Panels: []chart.Panel{p}}
	b.page.Charts[name+".svg"] = all.SVG()
	return fmt.Sprintf("![%s](%s/%s.svg)", title, b.folder, name)
}

// questions is how many steps moved against the baseline, and which moved most.
func (b *builder) questions() string {
	r := b.Set["questions"]
	if r == nil {
		return notMeasured("questions")
	}
	i := slices.IndexFunc(r.Tables, func(g goal.Grid) bool { return slices.Contains(g.Head, "verdict") && slices.Contains(g.Head, "ratio") })
	if i < 0 {
		return "The report of `questions` has no table with a verdict and a ratio for each step."
	}
	g := r.Tables[i]
	verdicts, ratios := slices.Index(g.Head, "verdict"), slices.Index(g.Head, "ratio")
	count := map[string]int{}
	var movers [][]any
	for _, row := range g.Rows {
		if len(row) != len(g.Head) {
			continue
		}
		v := fmt.Sprint(row[verdicts])
		count[v]++
		if _, ok := row[ratios].(float64); ok && v == "slower" {
			movers = append(movers, row)
		}
	}
	var list []string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%d %s", count[v], v))
	}
	text := fmt.Sprintf("%d steps against the baseline, time now over time there: %s.", len(g.Rows), strings.Join(list, ", "))
	slices.SortStableFunc(movers, func(a, b []any) int { return cmp.Compare(b[ratios].(float64), a[ratios].(float64)) })
	list = nil
	for _, row := range movers[:min(len(movers), mostMovers)] {
		name := fmt.Sprint(row[0]) // behind that of its package
		list = append(list, name[strings.LastIndex(name, " ")+1:]+" "+goal.Text(row[ratios]))
	}
	if len(list) > 0 {
		text += " Slowest movers: " + strings.Join(list, ", ") + "."
	}
	return text
}

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
