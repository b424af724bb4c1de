// Package node joins this process to the servers that replicate its journal, and hands out the
// connection to them.
//
// There are two ways to have such servers:
//
//	Start    the process is one of them: it runs a NATS server of its own, in memory connected
//	         to it, on the network connected to those of the other nodes alone
//	Connect  the servers are the operator's, reached by URL
//
// # The server of a node
//
// It acknowledges a write after a sync of its disk (a majority of nodes each), listens for other
// nodes and for nothing else, and takes no signal: the process stops it by Close, which first hands
// its leaderships to other nodes.
//
// Four things of it are not options of the library. The tests of this package show that a version
// of it still has them, so that a patch release is a change of go.mod alone:
//
//	timers.go    the time after which followers elect another leader; without, a warning and
//	             the library's time
//	servers.go   a listener for clients that has no address; without, a warning and a port of
//	             loopback
//	status.go    the library's name of the group that all nodes are in
//	timers.go    what its server keeps of a stream; without, the program does not link
//
// # Who may be a node
//
// All nodes have one list of routes: the id and address of each. Before a node starts it asks the
// address of each other one who answers there. It refuses to start if that is a node with its own
// id, with another id than the list has, or of another cluster: ids name the voters of every
// election, and two voters with one name are two votes for one disk.
//
//	directory/
//	  trunkline-cluster.json   cluster, node and partitions: fixed when the directory is made
//	  jetstream/               files of the server
//	  trunkline-renew.json     the next start moves those away and copies all again
//
// A lock on that file keeps a second process out.
package node
