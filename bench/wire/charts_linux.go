package main

import (
	"fmt"
	"slices"

	"trunkline/bench/internal/goal"
)

// axisCost names what all charts show.
const axisCost = "server CPU µs per request"

// charts draws the grid: what a request costs each server as connections and depth grow. A chart
// that lacks sizes is left out, as without the grid.
func charts(all []goal.Sample, o options) []goal.Chart {
	cells := gridCells(all)
	list := []goal.Chart{
		depthChart(cells, o),
		connsChart("peers-connections-depth-1", cells, 1),
		connsChart(fmt.Sprintf("peers-connections-depth-%d", o.depth), cells, o.depth),
	}
	return slices.DeleteFunc(list, func(c goal.Chart) bool { return len(c.Lines) == 0 || len(c.Lines[0].Points) < 3 })
}

// gridCells are the cells of the grid with a known cost, by size; servers stay in order.
func gridCells(all []goal.Sample) []goal.Summary {
	cells := slices.DeleteFunc(goal.Summarize(all), func(c goal.Summary) bool {
		return c.Method == paced || slices.Contains(methods, c.Method) && c.Method != evaluated || c.Median.CPU == 0
	})
	sortCells(cells)
	return cells
}

func depthChart(cells []goal.Summary, o options) goal.Chart {
	title := fmt.Sprintf("Server CPU per request as depth grows, at %d connections", o.conns)
	return chart("peers-depth", title, "requests in flight on each connection", cells, func(c goal.Cell) (x int, ok bool) {
		return c.Depth, c.Conns == o.conns && c.Server != grpcgo
	})
}

func connsChart(name string, cells []goal.Summary, depth int) goal.Chart {
	title := fmt.Sprintf("Server CPU per request as connections grow, %d in flight on each", depth)
	return chart(name, title, "connections", cells, func(c goal.Cell) (x int, ok bool) {
		return c.Conns, c.Depth == depth && (c.Server != grpcgo || depth == 1)
	})
}

// chart takes the cells that at places. The axes are linear, so grpc-go would press all others into
// one line in pipelined charts: at leaves it out there, and the title shows it.
func chart(name, title, x string, cells []goal.Summary, at func(goal.Cell) (x int, ok bool)) goal.Chart {
	c := goal.Chart{Name: name, Title: title, X: x, Y: axisCost}
	var beyond []float64
	for _, s := range cells {
		if x, ok := at(s.Cell); ok {
			c.Add(s.Server, float64(x), s.Median.CPU/1e3)
			continue
		}
		as := s.Cell // where it would stand under another name
		if as.Server = ""; s.Server == grpcgo {
			if _, ok := at(as); ok {
				beyond = append(beyond, s.Median.CPU/1e3)
			}
		}
	}
	if len(beyond) > 0 {
		c.Title += fmt.Sprintf(" (%s is beyond the scale: %.1f to %.1f µs)", grpcgo, slices.Min(beyond), slices.Max(beyond))
	}
	return c
}
