//go:build !linux || (!amd64 && !arm64)

package main

// ownEntry reports whether this system has an entry.
const ownEntry = false

// stdoutClosed reports whether the process is known to have been started without a stdout.
func stdoutClosed() bool { return false }

// keepLostStdout does nothing here: a stdout that was closed at the start is /dev/null.
func keepLostStdout() {}
