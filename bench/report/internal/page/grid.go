package page

import (
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

// gridColumns and methodColumns are the first columns, which name a cell.
func gridColumns() []column {
	return []column{
		{">connections", func(c goal.Summary) string { return strconv.Itoa(c.Conns) }},
		{">in flight", func(c goal.Summary) string { return strconv.Itoa(c.Depth) }},
		{"server", func(c goal.Summary) string { return c.Server }},
	}
}

func methodColumns() []column {
	return []column{
		{"method", func(c goal.Summary) string { return c.Method }},
		{"server", func(c goal.Summary) string { return c.Server }},
	}
}

type column struct {
	head string
	text func(c goal.Summary) string
}

// table is the cells with their medians.
func (l list) table(run *figures.Run, names []column) string {
	all := run.Samples()
	columns := append(names,
		column{">requests/s", func(c goal.Summary) string { return figure(c.Median.PerSec) }},
		column{">CPU µs/request", func(c goal.Summary) string { return figure(c.Median.CPU / 1e3) }},
		column{">p50 µs", func(c goal.Summary) string { return figure(c.Median.P50) }},
		column{">p99 µs", func(c goal.Summary) string { return figure(c.Median.P99) }},
		column{">p99.9 µs", func(c goal.Summary) string { return figure(c.Median.P999) }},
		column{">RSS MiB", func(c goal.Summary) string { return figure(goal.MiB(c.Median.RSS)) }},
		column{">CPU / " + bound, func(c goal.Summary) string { return overBound(all, c) }})
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	t := newTable(heads...)
	for _, c := range l {
		row := make([]string, len(columns))
		for i := range columns {
			row[i] = columns[i].text(c)
		}
		t.row(row...)
	}
	return t.String()
}

// overBound is the ratio of CPU time to the bound's under the same load: with the same method, or
// with the one that it has there.
func overBound(all []goal.Sample, c goal.Summary) string {
	below := goal.Cell{Server: bound, Method: c.Method, Via: c.Via, Conns: c.Conns, Depth: c.Depth}
	ratio := goal.Ratio(all, c.Cell, below, goal.CPU)
	for i := 0; ratio == 0 && i < len(all); i++ {
		if s := all[i].Cell; s.Server == bound && s.Conns == c.Conns && s.Depth == c.Depth {
			ratio = goal.Ratio(all, c.Cell, s, goal.CPU)
		}
	}
	if ratio == 0 {
		return "-"
	}
	return times(ratio)
}
