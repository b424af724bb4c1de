// Package peer holds what the peer servers share: the constant reply, counting kernel frames, and
// the way a peer announces itself and ends.
package peer

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"trunkline/codec/frame"
)

// maxFrame is the frame bound of kernel-ipc §2.1, so that a peer refuses what the measured server
// refuses.
const maxFrame = 5 << 20

// Frames returns the number of whole kernel frames (kernel-ipc §2.1) that b begins with and their
// length in bytes; ok is false if the next length field is outside the protocol's bounds. It does
// not allocate.
func Frames(b []byte) (count, used int, ok bool) {
	for len(b)-used >= frame.PrefixSize {
		n := frame.Len(b[used:])
		if n <= frame.PrefixSize || n > frame.PrefixSize+maxFrame {
			return count, used, false
		}
		if len(b)-used < n {
			break
		}
		used += n
		count++
	}
	return count, used, true
}

// Replies holds a constant reply many times over, so that any number of them is one write without
// building anything.
type Replies struct {
	size int
	run  []byte
}

// NewReplies returns RESPONSE frames of size bytes each, prefix included; at least five.
func NewReplies(size int) Replies {
	r := Replies{size: max(size, frame.HeaderSize)}
	nils := make([]byte, r.size-frame.HeaderSize)
	for i := range nils {
		nils[i] = 0xc0
	}
	for len(r.run) < 1<<20 {
		r.run = frame.Append(r.run, frame.Response, nil, nils)
	}
	return r
}

// Take returns up to n replies as one slice and how many are in it. The slice is shared: the caller
// only reads it.
func (r *Replies) Take(n int) (b []byte, taken int) {
	taken = min(n, len(r.run)/r.size)
	return r.run[:taken*r.size], taken
}

// Reply parses the flags, with the bytes of the constant reply among them.
func Reply() int {
	reply := flag.Int("reply", 174, "bytes of the constant reply, a frame's prefix included")
	flag.Parse()
	return *reply
}

// Listen listens on a free port and announces it: this is the line that the harness waits for. It
// has SIGTERM and SIGINT end the process quietly: a peer has no state worth a drain.
func Listen() net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		Fatal(err)
	}
	ExitOnSignal()
	Announce(ln.Addr().String())
	return ln
}

// Announce prints where the peer listens.
func Announce(addr string) { fmt.Printf("listening %s\n", addr) }

// ExitOnSignal ends the process on SIGTERM or SIGINT.
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
