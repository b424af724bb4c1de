// Package procgroup starts a program as the leader of a process group, and ends it with all that it
// started (toolhost §4.8, §4.9); it also finds programs, makes environments and reaps orphans.
package procgroup

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a process that leads its group. Any goroutine may use it.
type Process struct {
	*os.Process

	mu     sync.Mutex // signals are sent under it: after the leader is reaped its number is free
	reaped bool
}

// Start starts a process in a group of its own. On Linux it ends with the thread that starts it.
func Start(file string, argv []string, attr *os.ProcAttr) (*Process, error) {
	attr.Sys = isolated()
	proc, err := os.StartProcess(file, argv, attr)
	if err != nil {
		return nil, err
	}
	return &Process{Process: proc}, nil
}

// Kill ends every process of the group. After Wait it does nothing.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.Pid, unix.SIGKILL)
	}
}

// Wait waits for the end of the process, ends what is left of its group, and returns the exit code
// of toolhost §3.5: 128 and the number of the signal if one ended it.
func (p *Process) Wait() (code int) {
	st := awaitExit(p.Process)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	if st == nil {
		st, _ = p.Process.Wait()
	}
	p.reaped = true
	if st == nil {
		return Killed
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return st.ExitCode()
}

// Killed is the exit code of a process that SIGKILL ended.
const Killed = 128 + int(syscall.SIGKILL)
