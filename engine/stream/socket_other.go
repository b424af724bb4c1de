//go:build !unix

package stream

import "io"

// socket can be asked for nothing here.
type socket struct{}

func socketOf(io.ReadWriteCloser) socket { return socket{} }

func (socket) hungUp() bool                    { return false } // the answer's write will tell
func (socket) undelivered() (n int, told bool) { return 0, false }
func (socket) queued() (n int, told bool)      { return 0, false }
func (socket) unsent() (n int, told bool)      { return 0, false }
func (socket) awaitWritable()                  {}
