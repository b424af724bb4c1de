// Package bridge speaks the Model Context Protocol on a pair of streams and turns each tool call
// into a request to the server of agent threads (threads §2.3). It has no store, so that many
// participants can run it at once.
package bridge
