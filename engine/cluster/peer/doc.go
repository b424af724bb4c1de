// Package peer carries connections between the nodes of a cluster. A node that does not own what a
// client asks for forwards the client's whole connection to the node that does, byte for byte, so
// the client speaks to one server.
//
//	Server      the listener of a node for other nodes: a net.Listener for each service
//	Dial        a connection to a service of another node
//	Forwarder   accepts clients, and joins each to a connection that Dial made
//
// # Handshake
//
// Both sides prove that they know the secret of the cluster before a byte of a client is sent.
// Integers are big-endian.
//
//	dialler   "TLKP" version u8, nonce [16], length u16, header
//	server    nonce [16], mac [32] of "server"
//	dialler   mac [32] of "client"
//	server    status u8
//
// A mac is HMAC-SHA256, by the secret, of its label, both nonces and the header. The header holds
// four texts, each with its length as u8: the name of the cluster, the node that dials, the service
// and the address of the client. Version is 1. Status 0 accepts: what follows is the connection of
// the client. Any other status is a Refusal, and the server closes. Where the nodes have
// certificates, all of this is inside of TLS.
package peer
