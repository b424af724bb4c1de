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
// it. The bare group-commit loop is one event loop on one thread as redis is one, level-triggered
// epoll: each turn reads up to 16 KiB from every connection that is ready, appends 300 bytes for
// each kernel frame to one plain file by one write(2) and one fdatasync(2), and sends all replies,
// one write for each connection. It checks nothing and keeps no state: whatever keeps state does
// more. In everysec it answers after write(2) and a second thread syncs each second; while that
// runs the write waits up to two seconds, as in redis. redis-server gets SET of 300 bytes.
//
// A restart is SIGKILL and a start on the same directory until a request is answered. Files come
// out of the page cache. Then requests are sent, at 30 % of what the server did with one in flight
// on each of 64 connections, in bursts of a millisecond, and counted apart by whether they were due
// while a snapshot was being written. A latency counts from the time the request was due.
//
// Agent threads are measured in mode always, posts over lines beside RecordUsage of the kernel
// protocol on a server of its own. The bare handler of net/http waits for no disk. What MCP costs
// beside the handler of the Go SDK is the benchmark in handlers/threads/mcp. The server of the
// TypeScript SDK (node.mjs) answers a constant. Events of projects and of the message bus have
// about as many bytes: what is compared is the CPU time for each event delivered, that of what
// makes it included.
package store
