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

// Descendants are processes that a process has started. None are known here.
type Descendants struct{}

// Descendants returns none here: what leaves its group lives on.
func (p *Process) Descendants() Descendants { return Descendants{} }

// Started returns none here.
func Started() Descendants { return Descendants{} }

// Kill does nothing here.
func (Descendants) Kill() {}

// StartOf returns nothing here.
func StartOf(int) string { return "" }

// Adopts reports that nothing is adopted: adopted processes look like own children here.
func Adopts() bool { return false }

// ReapOrphans must not be called where Adopts is false.
func ReapOrphans() { select {} }
