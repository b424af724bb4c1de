//go:build !linux

package procgroup

import (
	"os"
	"syscall"
)

// isolated: there is no signal here when the server dies.
func isolated() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits for the process and reaps it: a group with members keeps its number.
func awaitExit(p *os.Process) *os.ProcessState {
	st, _ := p.Wait()
	return st
}

// Adopts reports that nothing is adopted: adopted processes look like own children here.
func Adopts() bool { return false }

// ReapOrphans must not be called where Adopts is false.
func ReapOrphans() { select {} }
