// Package benchview shows what a run of loadgen did: to people while it runs (one line of a
// terminal that is written over, or one line per interval), to people at the end (tables and plain
// sentences), and to programs (JSON, an HdrHistogram log, SVG).
//
//	loadgen.Sample ──► Status  a terminal: one line that is written over
//	                ─► Lines   anything else: one line per interval
//	loadgen.Result ──► Summary the tables at the end
//	                ─► JSON, HDRLog, SVG
//
// Every latency is from the intended start of its request. Texts that a server sent (its error
// codes) or that came from a flag (names, addresses) are cleaned before they are shown: no control
// character of theirs reaches a terminal. Tokens, bodies and the passwords of addresses are never
// shown.
//
// The charts are written by hand: a verb that answers once must start within milliseconds, and
// every package that the program imports is initialised at every start.
package benchview
