package ipc

import "trunkline/engine/kernel"

// Processes calls visit for the processes behind a creation sequence, in its order, until visit
// returns false. The PCB is lent for the call, and no lock is held (kernel.Kernel.List).
func (s *Service) Processes(after uint64, visit func(*kernel.PCB) bool) {
	s.kernel.List(&kernel.ListFilter{Cursor: after}, visit)
}

// Stage returns the stage that the session of a process is at, "" without one.
func (s *Service) Stage(pid []byte) string { return s.orch.CurrentStage(pid) }
