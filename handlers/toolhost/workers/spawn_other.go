//go:build !linux

package workers

import (
	"os"
	"sync"
	"syscall"
)

// shimmed: there are no limits here that a shim could set.
const shimmed = false

// startProcess starts a process in a group of its own. There is no signal when the server dies: the worker sees the end of its input.
func startProcess(j *spawnJob) (*os.Process, error) {
	j.attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	return os.StartProcess(j.file, j.argv, j.attr)
}

// self returns the path of this program.
func self() (string, error) { return os.Executable() }

// killGroup ends every process of the group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// reap waits for the end of the process and then ends what is left of its group. The lock is what signals are sent under; there is a
// moment here in which one could go to a process that took over the number.
func reap(p *os.Process, mu *sync.Mutex, reaped *bool) *os.ProcessState {
	st, _ := p.Wait() // no state is judged as a kill
	mu.Lock()
	defer mu.Unlock()
	*reaped = true
	killGroup(p.Pid)
	return st
}
