//go:build linux

// Command soak keeps 1000 connections × 64 pipelined requests on a server it starts itself, over a
// mix of the hot methods that also creates and ends processes all the time, and fails when anything
// is refused, dropped, or grows.
//
//	go run ./bench/soak                 one minute
//	go run ./bench/soak -duration 1h
//
// The server runs with small limits for processes and rate-limit users (flags), so that the bounded
// tables fill and evict within the first seconds; what grows after that grows for ever. It exits 1
// on any error reply, dropped or missing reply, or when resident memory after the first ten seconds
// grows by more than a tenth.
package main
