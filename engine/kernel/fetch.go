//go:build amd64 || arm64

package kernel

import "unsafe"

// fetchLine asks for the cache line of an address. Unlike a load it never holds up what comes after
// it, and no address is wrong.
//
//go:noescape
func fetchLine(at unsafe.Pointer)

// fetchRow asks for both lines of a row, and for those at text that hold the pid, or with ids all
// identifiers, if these are UUIDs.
//
//go:noescape
func fetchRow(r *row, text *byte, ids bool)
