//go:build linux

// Command wire measures the server over its real wire beside its peers and evaluates the
// performance goals.
//
//	go run ./bench/wire                  the whole grid and the goals, about six minutes
//	go run ./bench/wire -goals-only      what goals are about, about two minutes
//	go run ./bench/wire -quick           a look at all of it, about a minute
//	go run ./bench/wire -peer HOST:PORT  with one more kernel IPC server, already running
//
// Every server is a process of its own and this program is the one load generator, but for gRPC,
// which has bench/peers/grpcload. The servers take turns in every round, in alternating order, and
// a goal is evaluated by the median over the rounds of the ratio within one round: on a small
// shared machine only ratios of one run mean anything. The steadiest figure is server CPU per
// request, user and system time of the server process over requests, because the generator's share
// does not distort it.
//
// The grid is 1, 64 and 1000 connections, each with 1, 16 and 64 requests in flight. The cells that
// goals are about have more rounds than the others: all servers at 64×64, the hot methods there,
// and one request in flight on each of 64 and 1000 connections.
//
// In the pipelined cells the generator polls instead of sleeping (-spin=false to change that). The
// constant-reply server outruns the generator, which therefore never sleeps beside it; beside a
// slower server it would, and each of that server's writes would pay for waking it. Polling makes
// the two alike. With one request in flight both sides sleep, as real clients do.
//
// For latency (G8) the load is open: requests are due at a rate of their own, half of what the
// slower of the two servers answers at 64×64, and a latency counts from then. Each connection sends
// what is due of it once a millisecond, at a moment of its own.
//
// The server at -peer is another program's. It gets the same rows and the same grid; cells that it
// refuses, as with more connections than it allows, are left out and reported. CPU time and memory
// are read where its process is on this machine and this user's, else they are "-".
//
// What it does not show: a network (everything is loopback), more cores than the machine has, and
// latency under a load that leaves the machine room (the generator shares the cores; use -pin to
// keep them apart).
package main
