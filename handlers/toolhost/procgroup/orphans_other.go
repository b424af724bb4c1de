//go:build !linux

package procgroup

// Adopts reports that nothing is adopted: what a program adopts cannot be told from its own children here.
func Adopts() bool { return false }

// ReapOrphans must not be called where Adopts is false.
func ReapOrphans() { select {} }
