// Package peer carries connections between the nodes of a cluster. A node that does not own what a
// client asks for forwards the client's whole connection to the node that does, byte for byte, so
// the client speaks to one server.
//
//	Server      the listener of a node for others: a net.Listener for each service of a partition
//	Dial        a connection to a service of another node
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
// is above 0, and version 1 is for partition 0. Status 0 accepts: what follows is the connection of
// the client. Any other status is a Refusal, and the server closes.
package peer
