// Package cluster simulates whole clusters: state machines, journal, clocks and network of several
// nodes, and clients of theirs, in one goroutine bubble with a time of its own. A seed decides
// everything, and repeats.
//
//	clients ── ways ──► loop of a node ──► ipc.Service, idem.Table ──► store ──► journal.Log
//	                                                                               │
//	          owner.View ◄── replicated.Store (Tail, lease, fence) ◄── network ── memstream
//
// The state machines, the store, the journal, its replication and the arithmetic of leases are
// those of the program. Simulated are what is below and above them: a node is a loop of a
// simulated process, with a disk that a crash reaches, a clock that runs too fast or jumps, and
// networks to the stream and to the clients that lose, delay, overtake and cut. A process pauses,
// and goes on late.
//
// A world has one partition, or several over the same nodes, disks, clocks and networks: each has a
// stream, and a life at each node. A crash, a pause and most cuts reach all lives of a node, some
// cuts one stream alone, and what ends the ownership of one leaves the others. Clients find the
// partition of a process by the keyspace of the program. In worlds with several an owner now and
// then gives its partition to another node.
//
// # What is held
//
// In each partition the history of each process of the kernel has an order of its operations that
// explains it (porcupine): nothing that was answered is lost, done twice, or read after it was
// replaced. Each key of idempotency is executed once at most, and all its answers are the first
// one. A node that takes over has the state that the node before it had at that index, and no two
// own one epoch. The time of the log does not go back. A cluster whose networks are whole again
// serves.
//
// # Chance and time
//
// Equal times would make the order of goroutines count. So whatever passes between two of them that
// could meet takes a time that the dice of one of them decide, and no two dice give times that end
// at one moment. Goroutines that one event wakes have dice of their own for what they do next.
package cluster
