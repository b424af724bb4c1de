//go:build linux

// Command wire measures the server over its real wire beside its peers and judges the performance goals.
//
//	go run ./bench/wire              about five minutes
//	go run ./bench/wire -quick       a look, under a minute
//	go run ./bench/wire -peers-only  the peers without trunkline
//
// Every server is a process of its own and this program is the one load generator. The servers take turns in every round, in
// alternating order, and a goal is judged by the median over the rounds of the ratio within one round: on a small shared machine
// only ratios of one run mean anything. The steadiest figure is server CPU per request, user and system time of the server
// process over requests, because the generator's share does not distort it.
//
// In the pipelined cells the generator polls instead of sleeping (-spin=false to change that). The constant-reply server outruns
// the generator, which therefore never sleeps beside it; beside a slower server it would, and each of that server's writes
// would pay for waking it. Polling makes the two alike. With one request in flight both sides sleep, as real clients do.
//
// What it does not show: a network (everything is loopback), more cores than the machine has, and latency under a load that
// leaves the machine room (the generator shares the cores; use -pin to keep them apart).
package main
