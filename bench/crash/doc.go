//go:build linux

// Command crash kills a server it starts itself, again and again at random instants under load, starts it anew on the same
// directory and port, and compares what is there with what clients were told.
//
//	go run ./bench/crash
//	go run ./bench/crash -rounds 1000 -mode always -seed 7
//
// Some sixty actors share a few connections, so that requests are pipelined. Each works on a process, its session and an
// envelope of its own with one request at a time, and knows what the server holds: what the last reply left, or, of a request
// without a reply, what it would have made of that. After the restart one of the two has to be there, whole and once. A report that
// was not answered is sent again unread half of the time: it names the agent of one stage of a ring of two, so the server refuses it if
// it was taken, and iteration, tokens and outputs show a report that was taken twice.
//
// Beside the actors, others add to processes that all share, take processes off the ready queue, read what actors are changing and
// subscribe to events: what a reply or an event showed has to survive as well. Every few rounds the server is stopped cleanly or
// killed at rest, and then every reply has to be the same, byte by byte.
package main
