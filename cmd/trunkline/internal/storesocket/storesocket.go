// Package storesocket is the way from a verb of the store to the server that has the store open: a
// unix socket in the store's own directory, so that only those who may write the store can use it.
//
//	the verb    trunkline checkpoint 1
//	the server  {"dir":"/srv/data/backups/checkpoint-1/store","index":42}   or {"error":"..."}
//
// Each is one line. The server may answer late: it waits for a snapshot that is being written. The
// checkpoint is there until one of the two closes the connection. The server chooses its place and
// its name.
package storesocket

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir is the directory in a store where the socket is, and checkpoints unless they go elsewhere.
const Dir = "backups"

// socketName is the name of the socket.
const socketName = "control"

// request is the line that asks for a checkpoint. The number is that of this protocol.
const request = "trunkline checkpoint 1\n"

// maxSocketPath is what every system takes as the path of a socket, room for that of its lock
// included.
const maxSocketPath = 98

// Checkpoint is a journal that holds everything up to an index, and nothing that changes any more.
type Checkpoint struct {
	// Dir is the directory, absolute.
	Dir string `json:"dir"`
	// Index is the last one that was durable when it was made. It may hold more.
	Index uint64 `json:"index"`
}

// answer is the line of the server.
type answer struct {
	Checkpoint
	Error string `json:"error,omitempty"`
}

// address returns the path of the socket of a store. Where it is too long for an address, it goes
// through a descriptor of the directory, which done closes.
func address(store string) (path string, done func(), err error) {
	dir := filepath.Join(store, Dir)
	path = filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName), func() { _ = d.Close() }, nil
}
