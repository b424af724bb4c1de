//go:build linux

// Package soak keeps 1000 connections × 64 pipelined requests on a server, over a mix of the hot
// methods that also creates and ends processes all the time, and fails when anything is refused,
// dropped, or grows.
//
//	go run ./bench soak                 one minute
//	go run ./bench soak -duration 1h
//
// The server runs with small limits for processes and rate-limit users, so that the bounded tables
// fill and evict within the first seconds; what grows after that grows for ever. An error reply, a
// dropped or missing reply, and resident memory that grows by more than a tenth after the first ten
// seconds are faults.
package soak
