//go:build !linux

package kit

import "os/exec"

// Start starts a program. The caller waits for it.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
