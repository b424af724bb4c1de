//go:build linux

// Command rows shows what a table of up to a million live processes costs: server CPU per creation, look-up and removal as the
// table grows, resident memory per process, and the collector's worst pause.
//
//	go run ./bench/rows
//
// The server is a process of its own. Removal is measured as it happens in a full table: each creation evicts the process
// completed longest ago.
package main
