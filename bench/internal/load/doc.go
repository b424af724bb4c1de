// Package load is what the parts of ./bench share beside their reports: a closed loop, for
// comparing what servers cost per request, requests of the kernel and framings of its peers, and
// server processes with their cpu time and memory.
//
// A part stands on a Rig: a folder that goes with the run, the binary of the server under test, and
// the processes started in it. Measure runs one load against one server and returns the figures
// that bench/internal/goal evaluates; Tapes, Deal and RowEncoders make the requests about a table's
// rows.
//
// The package reads /proc: Linux only.
package load
