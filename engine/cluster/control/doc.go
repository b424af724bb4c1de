// Package control is a node of a cluster: what it decides, and what it asks of the other nodes.
//
//	Node    the membership of a server: orders, announcements, comparison of copies
//	Lease   one partition for the time of one replica: who owns it, and when this node may
//	Store   the journal of a partition on the streams of the cluster
//
// # Orders
//
// An operator moves a partition, drains or resumes a node, or balances the partitions. The node
// that got the order plans it by the states of all nodes (states) and has the owners carry it out.
// An order has a deadline by the clock of the node that carries it out: one that stood still does
// not do what the operator has given up.
//
// # Announcements
//
// Each node announces itself once a second (roll). What is heard is shown, and nothing depends on
// it.
//
// # Copies
//
// A node verifies its copy of each partition and publishes a report, with a hash of the journal up
// to a block (copyWatch). Nodes compare those. A node whose copy is damaged lets another one lead
// the stream, and starts again without its copies if each other node has all of the journal.
//
// The server of a node is the Host. It makes a Lease for each replica, and asks it whether to
// answer.
package control
