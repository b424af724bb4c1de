// Package questions is the benchmark suite: one file for one question, which is the file's first
// comment. It has tests only, and they see of the rooms only what is exported; a benchmark that has
// to look inside a room lives in that room.
//
//	go test -run '^$' -bench . ./bench/questions              all of it
//	go test -run '^$' -bench Table -short ./bench/questions   without the largest table
//
// An operation is what the name shows: one frame, one request, one line, one event. Work that comes
// in batches, such as the frames of one read, is done whole every so many operations, so that ns/op
// is its share; one iteration (-benchtime 1x) does a whole batch. Setup, warm-up and the check of
// the answer are outside of the time, and no benchmark grows with the number of its operations.
//
// What the rooms' own benchmarks answer is not asked again here: sockets and event loops
// (engine/reactor), restarts (handlers/ipc), snapshots (engine/kernel, engine/idem), blocks on a
// disk (engine/journal/embedded), the routing of methods (handlers/ipc), and how other JSON
// libraries find the members of a line (bench/peers/jsonscan).
package questions
