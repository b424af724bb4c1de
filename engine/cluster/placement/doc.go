// Package placement decides which partition a key belongs to, which nodes keep a partition, and
// which of them may serve it. All of it is pure: no socket, no goroutine, no clock of its own.
// Equal input gives equal output on every node and on every architecture; there is no floating
// point.
//
//	key ── Keyspace ──► partition ── Place, Plan ──► replicas ── Ownership ──► the one that serves
//
// # Keys
//
// A partition is the unit of ownership and of order (durability §6.1). Their number is fixed when a
// cluster is created, and so is the function from keys to them.
//
// # Nodes
//
// Every partition has an owner and ordered standbys, which follow its log. Nodes are ranked for a
// partition by rendezvous hashing, and the rank is overruled by bounds: no node is given more than
// its share and a slack. Plan starts from what is, so only what has to move moves.
//
// # Ownership
//
// One node owns a partition because its claim is the last one in the log: a claim is an append on
// condition of the last sequence, and so is every later append of the owner. The log is the fence
// for writes. Reads do not pass the log, so an owner serves them only under a lease:
//
//	owner     │ sends an append at s ──────── serves until s + lease - margin │
//	log             │ has it
//	standby              │ sees it at o ──────────────────── claims from o + lease on │
//
// The append is in the log after s, and a standby sees it after that. A standby that has not seen
// it cannot claim, for its condition does not hold. So the two spans overlap only if the clocks run
// at different rates, and the margin makes up for that up to MaxClockSkewPPM. Only an append that
// the log has acknowledged renews a lease. A heartbeat that does not go through the log does not: a
// standby could miss it and claim all the same.
//
// The clock has to go on while the machine is suspended: CLOCK_BOOTTIME on Linux, not
// CLOCK_MONOTONIC. A hypervisor that stops the clock of a guest together with the guest breaks the
// bound on rates; then reads must pass the log too.
package placement
