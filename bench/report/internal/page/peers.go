package page

import (
	"cmp"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

// bound is the server that only answers.
const bound = "baregnet"

// peers is the section on servers beside each other: the grid, the hot methods, the same rate, and
// charts.
func (b *builder) peers() (string, error) {
	run := b.set.Runs["peers"]
	if run == nil || len(run.Cells) == 0 {
		return notMeasured(commandOf("peers")), nil
	}
	grid, methods, even := split(run.Cells)
	parts := []string{
		"Every server over the whole grid, medians over the rounds. The last column is the median of its CPU time per request over that of `" + bound +
			"` under the same load in the same round.",
		grid.table(run, gridColumns()),
	}
	parts = append(parts, given(run)...)
	if len(methods) > 0 {
		parts = append(parts, "The hot methods at full depth:", methods.table(run, methodColumns()))
	}
	if len(even) > 0 {
		parts = append(parts, "Two servers at the same rate, which leaves both of them room, latency from the time a request was due:",
			even.table(run, methodColumns()))
	}
	pictures, err := b.peerCharts(grid)
	return strings.Join(append(parts, pictures), "\n\n"), err
}

// given lists what was given to the run, and what could not be measured.
func given(run *figures.Run) (parts []string) {
	if run.Peer != "" {
		parts = append(parts, "One more server was given: "+code(run.Peer)+".")
	}
	for _, m := range run.Missing {
		parts = append(parts, "Not measured: "+m+".")
	}
	return parts
}

// list is cells of the table.
type list []goal.Summary

// evenRate ends the method of cells in which both servers get requests at one rate instead of as
// many as they take.
const evenRate = " paced"

// split parts the cells of the grid, which hold one method of each server, from the further methods
// and from those at an even rate.
func split(cells []goal.Summary) (grid, methods, even list) {
	most := mainMethods(cells)
	for _, c := range cells {
		switch {
		case strings.HasSuffix(c.Method, evenRate):
			even = append(even, c)
		case most[c.Server] == c.Method:
			grid = append(grid, c)
		default:
			methods = append(methods, c)
		}
	}
	order := grid.servers()
	slices.SortStableFunc(grid, func(a, b goal.Summary) int {
		return cmp.Or(cmp.Compare(a.Conns, b.Conns), cmp.Compare(a.Depth, b.Depth), slices.Index(order, a.Server)-slices.Index(order, b.Server))
	})
	slices.SortStableFunc(methods, func(a, b goal.Summary) int { return cmp.Compare(a.Method, b.Method) })
	return grid, methods, even
}

// mainMethods is the method of each server that was measured at the most sizes.
func mainMethods(cells []goal.Summary) map[string]string {
	type pair struct{ server, method string }
	sizes, most := map[pair]int{}, map[string]string{}
	for _, c := range cells {
		p := pair{c.Server, c.Method}
		sizes[p]++
		if best, ok := most[c.Server]; !ok || sizes[p] > sizes[pair{c.Server, best}] {
			most[c.Server] = c.Method
		}
	}
	return most
}
