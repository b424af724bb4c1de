//go:build linux

// Package hostile attacks a server, one scene after the other, while well-behaved clients go on
// working, and evaluates what those clients and the server's memory felt.
//
//	go run ./bench hostile
//	go run ./bench hostile -only never-reads
//
// The reference load is 64 connections that together ask for GetProcess at a fixed rate, each with
// one request in flight; a latency counts from the time the request was due, so that a stall of the
// server is not hidden by the requests that it kept from being sent. It is measured alone and then
// during each scene. A scene passes when no reference request fails, its p99 stays under the larger
// of 25 ms, what one hostile frame may hold an event loop, and ten times the p99 without attack,
// the server's memory stays within 64 MiB of what it was, and the attacked connections behaved as
// the protocol asks. A scene whose only fault is latency is played up to three times.
package hostile
