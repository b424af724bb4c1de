// Package procgroup ends a program with everything that it started (toolhost §4.8, §4.11): a child process in a process group of its
// own, for programs that are started with os/exec. Pooled workers have their own (handlers/toolhost/workers), which also reaps them. What
// either leaves behind is reaped where this program is the one that adopts it.
package procgroup

import (
	"os/exec"
	"sync"
)

// Child is a process that was started after Isolate, and its group. Any goroutine may use it.
type Child struct {
	Cmd *exec.Cmd

	mu     sync.Mutex // between killing and reaping, after which the number may be somebody else's
	reaped bool
}

// Kill ends the process and its group, if they are not gone.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.killGroup()
	}
}
