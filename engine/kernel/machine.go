package kernel

import "trunkline/engine/store"

// Tag is the first byte of the kernel's records in a store.
const Tag byte = 'k'

// Machine returns the kernel as a machine of a store. ended is called during a recovery, in the
// order of all records, for each process that a change moved to TERMINATED.
func (k *Kernel) Machine(ended func(pid []byte, index uint64)) store.Machine {
	return store.Machine{Tag: Tag, State: k, Parallel: parallel{k, ended}}
}

type parallel struct {
	kernel *Kernel
	ended  func(pid []byte, index uint64)
}

// Recover implements store.Parallel.
func (p parallel) Recover(lanes int) store.Recovery { return p.kernel.Recover(lanes) }

// Follow implements store.Parallel.
func (p parallel) Follow(pid []byte, index uint64) { p.ended(pid, index) }
