// Package loadgen is an open-loop load generator for the protocols that trunkline serves, against
// any server that speaks them: the kernel IPC, toolhost lines, envelopes over HTTP.
//
// Open loop means that the schedule alone decides when a request is due, never the server: requests
// that could not go out because earlier ones are not answered wait, and their waiting is part of
// their latency. A closed loop would ask less of a slow server and so never see what its users see.
//
//	schedule ──► pacer ──► connection (writer) ──► server
//	 t(k)        wakes      encodes what is due,      │
//	                        one write per batch       │
//	 shard   ◄── connection (reader) ◄────────────────┘
//	 histograms  matches replies, frees places
//
// Request k is due at t(k), which is arithmetic, and belongs to connection k mod n. Nothing is
// queued: what waits is the distance between the request a connection sends next and the last one
// that is due.
//
// The package has no terminal and writes no file.
package loadgen
