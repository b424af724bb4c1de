//go:build linux

// Command cluster measures three nodes that share a journal, each a process on this machine: the
// part cluster of ./bench, which starts it. It is a module of its own, as it embeds etcd.
//
//	go run ./bench cluster                              ten minutes
//	go run ./bench cluster -only ratio                  beside etcd
//	go run ./bench cluster -only takeover -takeovers 5  how long nothing is answered
//	go run ./bench cluster -only memory                 what nodes hold
//	go run ./bench cluster -only older -older BINARY    a single server beside an older program
//
// Ratio: the clients of both are on this machine and connected to the node that decides, the owner
// of the journal and the leader of etcd. Trunkline is asked RecordUsage about 10,000 processes over
// 64 connections with 1 and with 16 requests in flight on each; every answer waits until a majority
// has synced the change. Members of etcd are asked to put 300 bytes under one of as many keys by
// its own client, 64 and 1024 at a time, over one connection for each 16: with one for all, its
// client is what is measured. Settings are the defaults but for what a busy machine would trip
// over: leases and elections of 5 s. The CPU time is that of all three processes.
//
// Takeover: the owner is killed with SIGKILL under load. What counts is the time from there until a
// client of another node has an answer to a change that it sent afterwards. A client whose
// connection ends connects again after 5 ms. Rounds in which the owner led the stream of the
// journal are counted apart from those in which another node did.
//
// What it does not show: a network, a disk for each node, more processors than the machine has.
package main
