package selector

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"trunkline/handlers/toolhost/shim"
)

// errNotBegun is a process that could not become the policy.
var errNotBegun = errors.New("the program did not begin")

// begin starts the process as every worker is started: by way of this binary, which sets the limits and becomes the program.
func (c *child) begin(l *shim.Limits, timeout time.Duration) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	c.Cmd.Path, c.Cmd.Args = "/proc/self/exe", shim.Argv(*l, c.Cmd.Path, c.Cmd.Args)
	c.Cmd.ExtraFiles = []*os.File{w} // shim.StatusFD
	err = c.Cmd.Start()
	_ = w.Close()
	if err != nil {
		return err
	}
	_ = r.SetReadDeadline(time.Now().Add(timeout)) // one that takes longer is ended as any that does
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		c.Reap()
		return errNotBegun
	}
	return nil
}

// signalCode returns what a shell calls the exit code of a process that a signal ended.
func signalCode(s *os.ProcessState) int {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return -1
	}
	return 128 + int(status.Signal())
}
