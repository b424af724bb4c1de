// Package conformance is the tool server's contract (toolhost) as tests: the program is talked to
// from outside, over its standard streams, a unix socket and a loopback TCP socket, and in its
// single-shot modes.
//
// A file of testdata is a transcript: what is set up, what is sent and what the contract demands as
// the answer. The directives are listed at type script in script_test.go. Expected answers are
// written from the contract, never recorded from the program, and nothing here imports the
// program's packages. What a line of text cannot express - limits, races, processes - is in Go
// beside them.
//
// TEST_BINARY names a program built before, also one written in another language;
// CONFORMANCE_TESTDATA names other transcripts. With -short, what waits for real time or opens
// thousands of connections is left out.
package conformance
