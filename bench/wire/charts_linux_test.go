package main

import (
	"reflect"
	"testing"

	"trunkline/bench/internal/goal"
)

func TestCharts(t *testing.T) {
	o := options{conns: 64, many: 1000, depth: 64}
	var all []goal.Sample
	add := func(server, method string, conns, depth int, micros float64) {
		all = append(all, goal.Sample{Cell: cell(server, method, conns, depth), CPU: micros * 1e3})
	}
	if got := charts(all, o); len(got) != 0 {
		t.Errorf("charts of nothing: %+v", got)
	}
	// The hot cells come first in a run; a chart's points are in order.
	add(baregnet, evaluated, 64, 64, 0.25)
	add(trunkline, "RecordUsage", 64, 64, 99)
	add(trunkline, paced, 64, 64, 99)
	add(grpcgo, unary, 64, 64, 20)
	add(baregnet, evaluated, 64, 1, 64)
	if got := charts(all, o); len(got) != 0 {
		t.Errorf("charts without the grid: %+v", got)
	}
	all = all[:len(all)-1]
	for _, at := range o.sizes() {
		if at != [2]int{64, 64} {
			add(baregnet, evaluated, at[0], at[1], float64(at[0])/float64(at[1]))
			add(grpcgo, unary, at[0], at[1], 10+float64(at[1]))
			add(given, evaluated, at[0], at[1], 0) // its CPU time is unknown
		}
	}
	got := charts(all, o)
	if len(got) != 3 {
		t.Fatalf("%d charts", len(got))
	}
	line := func(name string, x1, y1, x2, y2, x3, y3 float64) goal.Line {
		return goal.Line{Name: name, Points: []goal.Point{{X: x1, Y: y1}, {X: x2, Y: y2}, {X: x3, Y: y3}}}
	}
	want := []goal.Chart{
		{Name: "peers-depth", Title: "Server CPU per request as depth grows, at 64 connections (grpc-go is beyond the scale: 11.0 to 26.0 µs)",
			X: "requests in flight on each connection", Y: axisCost, Lines: []goal.Line{line(baregnet, 1, 64, 16, 4, 64, 0.25)}},
		{Name: "peers-connections-depth-1", Title: "Server CPU per request as connections grow, 1 in flight on each", X: "connections", Y: axisCost,
			Lines: []goal.Line{line(grpcgo, 1, 11, 64, 11, 1000, 11), line(baregnet, 1, 1, 64, 64, 1000, 1000)}},
		{Name: "peers-connections-depth-64", Title: "Server CPU per request as connections grow, 64 in flight on each (grpc-go is beyond the scale: 20.0 to 74.0 µs)",
			X: "connections", Y: axisCost, Lines: []goal.Line{line(baregnet, 1, 1.0/64, 64, 0.25, 1000, 1000.0/64)}},
	}
	for i := range want {
		want[i].Lines, got[i].Lines = sorted(want[i].Lines), sorted(got[i].Lines)
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%+v\nwant %+v", got[i], want[i])
		}
	}
}

// sorted puts the lines, at most two, in the order of their names.
func sorted(lines []goal.Line) []goal.Line {
	if len(lines) == 2 && lines[0].Name > lines[1].Name {
		return []goal.Line{lines[1], lines[0]}
	}
	return lines
}
