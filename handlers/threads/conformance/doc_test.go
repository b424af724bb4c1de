// Package conformance has the tests of agent threads against the real program over real sockets:
// the tables of the contract, its examples, crashes, and agents in a real tmux.
package conformance
