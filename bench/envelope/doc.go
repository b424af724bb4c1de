//go:build linux

// Command envelope measures the envelope engine and the orchestration sessions, and evaluates their
// performance goals.
//
//	go run ./bench/envelope                 all parts, about three minutes
//	go run ./bench/envelope -parts step     a step beside encoding/json
//	go run ./bench/envelope -parts report   ReportAgentResult beside net/http
//	go run ./bench/envelope -parts process  a process per envelope, and kept HTTP
//
// Each part answers one question. step: what does an engine step cost next to decoding the same
// envelope into a map and encoding it again, which is the least a server does that has no model of
// its own? Both run in this process in turns. report: what does an agent step cost next to the same
// decision on maps behind net/http and encoding/json? Each server is a process of its own, this
// program is the load generator, and 32 requests are in flight in both: pipelined on one connection
// here, on 32 connections there, because HTTP/1.1 does not answer out of turn. process: what does a
// caller wait for who starts the program for every envelope?
//
// Goals are evaluated by the median over the rounds of a ratio within one round. What this does not
// show: a network, more cores than the machine has, and servers under different loads at the same
// time.
package main
