package main

import (
	"os"
	"runtime"
)

// minProcessors is the least GOMAXPROCS of a server that keeps its state. A thread that waits for
// the disk or for its sockets holds a processor of the Go scheduler until the scheduler takes it
// away. While none is idle, the scheduler looks for one every 20 µs, which was a seventh of the
// server's CPU on a machine of two. A loop and the writer of the log wait at the same time: one is
// idle among three.
const minProcessors = 3

// spareProcessors raises GOMAXPROCS to minProcessors. A number from the environment is the
// operator's and stays. It is called after the sizes of tables and loops were derived from the
// machine's number.
func spareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < minProcessors {
		runtime.GOMAXPROCS(minProcessors)
	}
}
