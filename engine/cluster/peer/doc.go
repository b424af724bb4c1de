// Package peer carries connections between the nodes of a cluster. A node that does not own what a
// client asks for forwards the client's whole connection to the node that does, byte for byte, so
// the client speaks to one server.
//
//	Server      the listener of a node for others: a net.Listener for each service of a partition
//	Dialer      connections to services of other nodes
//	Forwarder   accepts clients, and joins each to a connection that Dial made
//	Join        copies between the two
//
// # Handshake
//
// Where the nodes have certificates or a secret, all of this is inside of TLS with a certificate of
// each side. Integers are big-endian.
//
//	dialler   "TLKP" version u8, length u16, header
//	server    status u8
//
// The header holds four texts, each with its length as u8: the name of the cluster, the node that
// dials, the service and the address of the client. In version 2 the partition follows as u32; it
// is above 0, and version 1 is for partition 0. In version 3 it is any, and the connection is
// dated. A node that does not know version 3 closes without a status, and is dialled with the
// others. Status 0 accepts: what follows is the connection of the client. Any other status is a
// Refusal, and the server closes.
//
// # Late requests
//
// A client that had no answer reads whether its request had an effect. What it sent may still be in
// the buffer of a socket, and must not have an effect after that. So each node shows its clock
// (connection.Mono) to those that dial it, four times in the term of a lease, on a connection of
// the service "pulse": u64 after u64. A dated connection carries what a client sends in pieces,
// each with the reading that came last:
//
//	length u16, clock u64, bytes
//
// The node that gets a piece compares the clock with its own one: the bytes were sent after that
// reading, so they were on their way for no longer than the difference. If that is more than a term
// the connection ends, and nothing of the piece or behind it is used. No clocks of two nodes are
// compared. A node that hears no reading for a term ends its connections to the other one; it also
// does so if it was itself stopped for that long, before it takes a newer reading. It dials no one
// for two terms then: what clients sent meanwhile, on connections open or new, may be old.
package peer
