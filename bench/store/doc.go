//go:build linux

// Package store measures what durability costs over the real wire (goals G12 to G14, durability
// §7), how soon a large table is back after SIGKILL (G16), and agent threads and projects beside
// what does as much elsewhere.
//
//	go run ./bench store restart       six minutes
//	go run ./bench restart -rows 100000
//	go run ./bench threads projects    three minutes
//
// CreateProcess gets a fresh server for each cell, so that no table of an earlier cell weighs on
// it. The time of a bare write and fdatasync in the same folder is taken in every round, as context
// for all of it.
//
// The bare group-commit loop is a child of the run: one event loop on one thread as redis is one,
// level-triggered epoll, each turn reading up to 16 KiB from every connection that is ready,
// finding the request id in each kernel frame, appending 300 bytes for each request to one plain
// file by one write(2), one fdatasync(2), then all replies, one write for each connection. It
// checks nothing, keeps no state and replies with an empty body: whatever keeps state does more. In
// everysec it answers after write(2) and a second thread syncs each second; while a sync runs the
// write waits up to two seconds, as in redis. redis-server gets SET of 300 bytes.
//
// A restart is SIGKILL and a start on the same directory until a request is answered: from the log
// alone, from a snapshot, and from a snapshot with a tail. Files come out of the page cache. Then
// requests are sent, at 30 % of what the server did with one in flight on each of 64 connections,
// in bursts of a millisecond, and counted apart by whether they were due while a snapshot was being
// written. A latency counts from the time the request was due.
//
// Agent threads are measured in mode always, each connection an agent with a token of its own.
// Posts over lines, each with a key, are compared with RecordUsage of the kernel protocol, on a
// server of its own: to a thread for each connection, and to one for all. Polls that find nothing
// are compared with a tool that does nothing, on the same server. Posts over HTTP stand beside a
// handler of net/http that reads the body and answers a constant; it waits for no disk. What MCP
// costs beside the handler of the Go SDK is the benchmark in handlers/threads/mcp; beside it stand
// calls over HTTP, to the same server in a form that its own path leaves to that handler. A
// stateless server of the TypeScript SDK (node.mjs) answers a constant, where it is installed.
//
// A project in which nothing runs gets Pause commands, which its state refuses, beside a tool that
// does nothing, in the same process. And one connection has sets of diffs refused, each with an
// event for 100 other connections, beside 100 subscribers of the message bus, whose events have
// about as many bytes: what is compared is the CPU time for each event delivered, that of what
// makes it included. The goal is about a thousand events a second at both, one at a time; as many
// as each can make are reported.
package store
