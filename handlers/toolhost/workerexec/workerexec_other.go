//go:build !linux

package workerexec

import "os"

// Enabled reports whether programs are started through this package: there are no limits here.
const Enabled = false

// Self returns the path of this program.
func Self() (string, error) { return os.Executable() }

// confine does nothing: there are no such limits here.
func confine(string) {}

// become is never asked for: programs are started directly here.
func become(string, string, []string) { os.Exit(failedCode) }
