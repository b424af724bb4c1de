package page

import (
	"fmt"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/chart"
)

// The load at which charts compare the servers.
const fullConns, fullDepth = 64, 64

// peerCharts draws the servers beside each other.
func (b *builder) peerCharts(grid list) (string, error) {
	all := []chart.Bars{
		grid.bars("peers-cpu", fmt.Sprintf("Server CPU per request, %d connections × %d in flight", fullConns, fullDepth), "server CPU µs per request",
			grid.series("", fullDepth, func(s goal.Sample) float64 { return s.CPU / 1e3 })),
		grid.bars("peers-rate", fmt.Sprintf("Requests per second over %d connections", fullConns), "requests per second", grid.depths(goal.Rate)...),
		grid.bars("peers-latency", fmt.Sprintf("Latency, %d connections × 1 in flight", fullConns), "µs from request to reply",
			grid.series("p50", 1, func(s goal.Sample) float64 { return s.P50 }),
			grid.series("p99", 1, func(s goal.Sample) float64 { return s.P99 }),
			grid.series("p99.9", 1, func(s goal.Sample) float64 { return s.P999 })),
	}
	var parts []string
	for _, bars := range all {
		part, err := b.drawBars(bars)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n\n"), nil
}

func (l list) bars(name, title, y string, series ...chart.Series) chart.Bars {
	return chart.Bars{Name: name, Title: title, Y: y, Names: l.servers(), Series: series}
}

// servers are the names in the grid, in their order.
func (l list) servers() (names []string) {
	for _, c := range l {
		if !slices.Contains(names, c.Server) {
			names = append(names, c.Server)
		}
	}
	return names
}

// series is one figure of each server at full width and some depth.
func (l list) series(name string, depth int, pick func(goal.Sample) float64) chart.Series {
	s := chart.Series{Name: name}
	for _, server := range l.servers() {
		i := slices.IndexFunc(l, func(c goal.Summary) bool { return c.Server == server && c.Conns == fullConns && c.Depth == depth })
		v := 0.0
		if i >= 0 {
			v = pick(l[i].Median)
		}
		s.Values = append(s.Values, v)
	}
	return s
}

// depths is a series for every depth that was measured at full width.
func (l list) depths(pick func(goal.Sample) float64) (all []chart.Series) {
	var seen []int
	for _, c := range l {
		if c.Conns == fullConns && !slices.Contains(seen, c.Depth) {
			seen = append(seen, c.Depth)
		}
	}
	slices.Sort(seen)
	for _, d := range seen {
		all = append(all, l.series(fmt.Sprintf("%d in flight", d), d, pick))
	}
	return all
}
