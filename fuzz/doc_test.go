// Package fuzz holds the fuzz targets and random tests of whole sessions (kernel-ipc; the services
// engine and orchestration of envelope), with their seeds and the inputs that once failed.
//
// Everything a session reports is held against a model of the contracts: plain maps and slices,
// written from its text alone, with a MessagePack reader and writer of its own. Neither shares code
// with what it judges.
//
//	bytes ─► program ─► requests ─┬─► sessions of handlers/ipc ─► frames ─┐
//	                              └─► model ─► expected frames ───────────┴─► must match
//
// One program runner serves the fuzz target FuzzSession and the seeded TestRandomSessions. It owns
// the connections the way an event loop does, but moves bytes, pumps and turns the clock as the
// program has it: cut points, pipelining, slow readers, half-closes, leases, rate windows and query
// deadlines are all inputs.
package fuzz
