//go:build linux

// Package envelopes measures the envelope engine and the orchestration sessions beside what people
// would write, and evaluates their goals.
//
// Each section answers one question. step: what does an engine step cost next to decoding the same
// envelope into a map and encoding it again, which is the least a server does that has no model of
// its own? Both run in this process in turns. report: what does an agent's step cost next to the
// same decision on maps behind net/http and encoding/json? As many requests are in flight in both:
// pipelined on one connection here, on a connection each there, because HTTP/1.1 does not answer
// out of turn. process: what does a caller wait for who starts the program for every envelope?
package envelopes
