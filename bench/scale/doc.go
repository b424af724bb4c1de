//go:build linux

// Command scale shows what the server costs as things grow: rows, idle connections, live data for
// the garbage collector, subscribers, payloads. It evaluates the goals G5, G7, G9 and G10,
// and compares settings of the server.
//
//	go run ./bench/scale                      about five minutes, some 6 GiB of memory
//	go run ./bench/scale -quick               a look, under 40 seconds
//	go run ./bench/scale -parts rows,gc       only these parts
//	go run ./bench/scale -parts rows -profile DIR  where the time goes in the largest table
//
// Every server is a process of its own. Sizes that are compared are up at the same time and take
// turns in every round, in alternating order, and growth is the median over the rounds of the ratio
// within one round. The figure throughout is server CPU per request: user and system time of the
// server's process over requests.
//
//   - rows: tables of 10,000 to 10,000,000 processes with 36-byte identifiers; the requests are
//     about rows in an order that no cache foresees, at most 4096 rows for each of 64 connections.
//     Creation is measured twice: while the table grows, and at a size that stays, where each
//     creation evicts a process that has ended.
//   - idle: resident memory per connection over TCP that asked once and is silent since. What the
//     kernel holds for a socket is no memory of the process and is not in it.
//   - gc: pauses and CPU time of the garbage collector with a million rows, from the runtime's own
//     trace, sweeping excepted. Hot methods allocate nothing, so there is a load with creations and
//     envelopes beside them, and one with forced collections. The server has CPUs of its own here:
//     where it shares them with the load, a stop waits for a thread that the kernel has put aside,
//     and lasts milliseconds that show the kernel's scheduler only.
//   - fanout: server CPU per event that reached a subscriber, the publisher's request in it.
//   - payload: one text within the request, the reply, or both. Structure within the payload costs
//     more than this shows.
//   - loops: event loops, CPUs of their own for the server and the load, GOGC.
//
// What it does not show: a network, more cores than the machine has, and what a server holds that
// has run for days.
package main
