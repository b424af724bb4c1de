//go:build linux

// Command store measures what durability costs over the real wire, beside a bare group-commit loop
// and beside the server's own memory mode, and evaluates the goals of durability §7.
//
//	go run ./bench/store           under ten minutes
//	go run ./bench/store -quick    a look, under a minute and a half
//	go run ./bench/store -parts restart -restart-rows 100000
//	go run ./bench/store -parts threads    agent threads, about two minutes
//	go run ./bench/store -parts projects   projects, under a minute
//
// Every server is a process of its own and this program is the one load generator, over loopback.
// The servers take turns in every round, in alternating order, and a goal is evaluated by the
// median over the rounds of the ratio within one round: on a shared machine only ratios of one run
// mean anything. Cells of 64 and of 1024 connections have one request in flight on each, as
// redis-benchmark has, or 16. CreateProcess gets a fresh server for each cell, so that no table of
// an earlier cell weighs on it. Server CPU is user and system time of the server process over
// requests, because the generator's share does not distort it.
//
// The peer is this program again, as a child (-peer): one event loop on one thread as redis is one,
// level-triggered epoll, each turn reading up to 16 KiB from every connection that is ready,
// finding the request id in each kernel frame, appending 300 bytes for each request to one plain
// file by one write(2), one fdatasync(2), then all replies, one write for each connection. It
// checks nothing, keeps no state and replies with an empty body: whatever keeps state does more. In
// everysec it answers after write(2) and a second thread syncs each second; while a sync runs the
// write waits up to two seconds, as in redis. Where redis-server is installed (or -redis names one)
// it is measured as well, with SET of 300 bytes.
//
// After the rounds: a table of a million processes is made over the wire, the server is killed
// (SIGKILL) and started on the same directory until a request is answered: from the log alone, from
// a snapshot, and from a snapshot with a tail. Files come out of the page cache. Unless the server
// shows in its line "recovered" what each part took (snapshot_secs, replay_secs), the snapshot
// before a tail counts as long as the one without. Then requests are sent, at 30 % of what the
// server did with one in flight on each of 64 connections, in bursts of a millisecond, and counted
// apart by whether they were due while a snapshot was being written. A latency counts from the time
// the request was due. Time of a bare write and fdatasync in the same directory is taken in every
// round, as context for all of it.
//
// Agent threads are a part of their own, in mode always, each connection an agent with a token of
// its own. Posts over lines, each with a key, are compared with RecordUsage of the kernel protocol,
// on a server of its own with as many connections and requests in flight: to a thread for each
// connection, and to one for all. Polls that find nothing are compared with a tool that does
// nothing, on the same server. Posts over HTTP stand beside a handler of net/http that reads the
// body and answers a constant, in a process of this program (-peer http); it waits for no disk.
// What MCP costs beside the handler of the Go SDK is the benchmark in handlers/threads/mcp; beside
// it stand calls over HTTP, to the same server in a form that its own path leaves to that handler,
// which are reported. A stateless server of the TypeScript SDK (node.mjs), whose tool answers a
// constant, is one more peer where node and the package are installed.
//
// Projects are a part of their own, too. Over TCP, a project in which nothing runs gets
// Pause commands, which its state refuses, beside a tool that does nothing, in the same
// process. And one connection has sets of diffs refused, each with an event for 100 other
// connections, beside 100 subscribers of the message bus, whose events have about as many bytes:
// what is compared is the CPU time for each event delivered, that of what makes it included.
//
// What it does not show: a network, a disk that loses power, and more cores than the machine has.
package main
