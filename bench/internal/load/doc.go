// Package load is what the benchmark programs share: a light pipelining load generator, the client
// side of the framings (kernel, RESP, HTTP, lines, NATS), server processes with their cpu time and
// memory, and a latency histogram.
//
// A program is a call of Main. It stands on a Rig: a folder that goes with the run, the binary of
// the server under test, and the processes started in it. Measure runs one load against one server
// and returns the figures that bench/internal/goal evaluates; Tapes, Deal and RowEncoders make the
// requests about a table's rows.
//
// One worker goroutine owns many connections through one epoll instance and allocates nothing per
// request, because on a small machine the generator shares the cores with the server it measures.
// Requests are encoded before the run into a Tape per connection; a connection keeps Depth requests
// in flight and answers each batch of replies with one write of as many requests, as a pipelining
// client does.
//
// The package reads /proc and uses epoll: Linux only.
package load
