//go:build !linux

package selector

import (
	"os"
	"time"

	"trunkline/handlers/toolhost/shim"
)

// begin starts the process without limits, which toolhost §4.8 allows as the best effort: they need Linux.
func (c *child) begin(*shim.Limits, time.Duration) error { return c.Cmd.Start() }

func signalCode(*os.ProcessState) int { return -1 }
