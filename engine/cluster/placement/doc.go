// Package placement decides which partition a key belongs to, and which nodes keep and own a
// partition. All of it is pure: no socket, no goroutine, no clock. Equal input gives equal output
// on every node and on every architecture; there is no floating point.
//
//	key ── Keyspace ──► partition ── Plan ──► replicas, the owner first
//
// # Keys
//
// A partition is the unit of ownership and of order (durability §6.1). Their number is fixed when a
// cluster is created, and so is the function from keys to them.
//
// # Nodes
//
// Every partition has an owner and ordered standbys, which follow its log. Plan starts from what
// is, so only what has to move moves. A new copy goes to the node with the fewest; of those that
// are alike, to the one that rendezvous hashing ranks first for the partition.
//
// Who owns a partition now is in its log, and engine/cluster/owner decides who takes over.
package placement
