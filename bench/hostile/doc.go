//go:build linux

// Command hostile attacks a server it starts itself, one scene after the other, while well-behaved
// clients go on working, and evaluates what those clients and the server's memory felt.
//
//	go run ./bench/hostile
//	go run ./bench/hostile -scene never-reads
//
// The reference load is 64 connections with one GetProcess at a time at a fixed rate. It is
// measured alone and then during each scene. A scene passes when no reference request fails, its
// p99 stays under the larger of -p99 (25 ms: what one hostile frame may hold an event loop) and ten
// times the p99 without attack, the server's memory stays within -memory of what it was, and the
// attacked connections behaved as the protocol asks. A scene whose only fault is latency is played
// up to -tries times.
package main
