// Package jsonscan measures how long it takes to get the known members out of one request line,
// against the JSON libraries that are quick at it. It holds nothing but a benchmark:
//
//	go test -bench . -count 6 ./jsonscan
//
// trunkline's scan checks the whole line (grammar, UTF-8, depth, duplicates) in the same pass. Of
// the others fastjson checks the grammar but not the UTF-8; sonic's searcher goes through the line
// once per member and evaluates nothing behind what it found, so sonic-valid-searcher checks the line
// before. Besides the wall time each row has cpu-ns/op, the processor time of the thread: compare
// that on a machine that does other work.
package jsonscan
