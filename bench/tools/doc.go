//go:build linux

// Package tools measures the tool server beside a server that does nothing with its lines, and
// evaluates the goals of its hot path (toolhost §10).
//
//	go run ./bench tools                     under six minutes
//	go run ./bench tools -quick              a look, under a minute
//	go run ./bench tools -only 'worker|start'
//
// Requests/s are what is evaluated; the ratio of the server's CPU time per request stands beside
// it, because the generator's share does not distort that.
//
// tcp: requests pipelined over one connection and over many, of three kinds: a tool that does
// nothing (noop), a request whose outcome is kept under its key (hit), and a tool that writes one
// slot of the state (slot). The peer is this program again, as a child: the same event loops and
// listener, and a session that sends each line back. It reads nothing in the line but its end. The
// goals are about many connections; one is reported.
//
// pipes: the same over stdin and stdout. Here the peer answers each line with a constant reply as
// long as the tool server's, through the same reader and writer goroutines. The goal is about noop;
// hit and slot are reported.
//
// worker: an external tool on kept processes beside one process for each call, one call at a time
// and several. The goal is about a tool in Python that imports nothing but sys, where python3 is
// installed. Beside it stands the small Go program in bench/tools/worker, which is reported: its
// whole life takes about a millisecond, less than most interpreters take to start.
//
// start: what a caller waits for who starts the program for every call (tool_exec), and the CPU
// time it takes; beside the small program, which is about the least a Go program takes.
//
// What it does not show: a network, more cores than the machine has, and tools that do something.
package tools
