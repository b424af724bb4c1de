//go:build linux

// Package scale shows what the server costs as things grow: rows, idle connections, live data for
// the garbage collector, subscribers, payloads. It evaluates the goals G5, G7, G9 and G10.
//
// Sizes that are compared are up at the same time and take turns in every round; growth is the
// median over the rounds of the ratio within one round. The largest table, -rows, is ten million
// processes and takes some 6 GiB of memory.
//
// What it does not show: a network, more cores than the machine has, and what a server holds that
// has run for days. Structure within a payload costs more than its one text shows.
package scale
