// Package peer holds what the peer servers share: the constant reply, counting kernel frames, and
// the way a peer announces itself and ends.
package peer

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// MaxFrame is the frame bound of kernel-ipc §2.1, so that a peer refuses what the measured server
// refuses.
const MaxFrame = 5 << 20

// Frames returns the number of whole kernel frames (kernel-ipc §2.1) that b begins with and their
// length in bytes; ok is false if the next length field is outside the protocol's bounds. It does
// not allocate.
func Frames(b []byte) (count, used int, ok bool) {
	for len(b)-used >= 4 {
		n := binary.BigEndian.Uint32(b[used:])
		if n == 0 || n > MaxFrame {
			return count, used, false
		}
		if len(b)-used < 4+int(n) {
			break
		}
		used += 4 + int(n)
		count++
	}
	return count, used, true
}

// Reply returns a RESPONSE frame of size bytes, prefix included; at least five.
func Reply(size int) []byte {
	size = max(size, 5)
	frame := make([]byte, size)
	binary.BigEndian.PutUint32(frame, uint32(size-4))
	frame[4] = 0x02
	for i := range frame[5:] {
		frame[5+i] = 0xc0
	}
	return frame
}

// Replies holds a constant reply many times over, so that any number of them is one write without
// building anything.
type Replies struct {
	size int
	run  []byte
}

// NewReplies returns Replies of size bytes each.
func NewReplies(size int) Replies {
	one := Reply(size)
	r := Replies{size: len(one)}
	for len(r.run) < 1<<20 {
		r.run = append(r.run, one...)
	}
	return r
}

// Take returns up to n replies as one slice and how many are in it. The slice is shared: the caller
// only reads it.
func (r *Replies) Take(n int) (b []byte, taken int) {
	taken = min(n, len(r.run)/r.size)
	return r.run[:taken*r.size], taken
}

// FreeAddr returns addr with a port that was free a moment ago in place of port 0, for servers that
// cannot report which port they were given.
func FreeAddr(addr string) (string, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// Announce prints the line that the harness waits for.
func Announce(addr string) { fmt.Printf("listening %s\n", addr) }

// ExitOnSignal ends the process quietly on SIGTERM or SIGINT: a peer has no state worth a drain.
func ExitOnSignal() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-c
		os.Exit(0)
	}()
}

// Fatal prints err and ends the process.
func Fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
