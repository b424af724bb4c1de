//go:build linux

// Package placement shows what the placement of a large cluster does: a thousand nodes in three
// zones, a hundred partitions for each (-rows), three copies of each partition. Nothing is
// measured: the decisions of engine/cluster/placement and engine/cluster/owner are called with a
// clock and a log that are simulated, so every run gives the same tables, which docs/scale.md
// shows.
//
// Four questions: how evenly do keys, owners and copies spread; how much moves when nodes come and
// go, beside the least that has to; how long is a partition without an owner; how long until all
// copies are there again. The times rest on assumptions, which are a table of their own.
//
// What it does not show: what a node can do, and whether a bus and a log of that many nodes work.
package placement
