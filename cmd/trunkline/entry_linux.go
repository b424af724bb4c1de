//go:build linux && (amd64 || arm64)

package main

import (
	"math"
	"os"
)

// ownEntry reports whether this system has an entry.
const ownEntry = true

// stdoutAtStart is what fcntl(1, F_GETFD) returned before the runtime began: it is negative if the
// process was started without a stdout (>&-). The runtime opens /dev/null in its place, where
// output would vanish without an error. It stays 0 in a program that is not linked with -E
// main.entry.
var stdoutAtStart int

// entry is where the process starts if it is linked with -E main.entry.
func entry()

// stdoutClosed reports whether the process was started without a stdout.
func stdoutClosed() bool { return stdoutAtStart < 0 }

// keepLostStdout makes each write to a stdout that was closed at the start fail, so that the loss
// shows in the exit code.
func keepLostStdout() {
	if stdoutClosed() {
		os.Stdout = os.NewFile(math.MaxInt32, "/dev/stdout")
	}
}
