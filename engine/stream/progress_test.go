package stream

import (
	"io"
	"testing"
	"time"

	"trunkline/fuzz/kit/linktest"
)

// TestASlowPeerIsNotAStuckOne: it is what the peer takes that counts, not whole frames (kernel-ipc
// §2.3, toolhost §2.2).
func TestASlowPeerIsNotAStuckOne(t *testing.T) {
	const size = 100_000
	f := func(rate int, all bool) {
		t.Helper()
		s := newSlowTaker(rate, linktest.Sized('b', size))
		serveSlowly(t, s, func(h *Host) {
			time.Sleep(time.Duration(size/rate+2*int(write/time.Second)) * time.Second)
			if got := s.bytes() == size+linktest.HeaderBytes+1; got != all {
				t.Errorf("at %d bytes/s: %d bytes taken, all wanted %v; closed: %v", rate, s.bytes(), all, h.Snapshot().Closed)
			}
		})
	}
	piece := sendPiece / int(write/time.Second) // the rate that takes one piece within the time
	f(piece+10, true)
	f(piece-10, false) // nothing is seen to be taken within the time
}

// TestTheSocketTellsOfProgress: once full, a socket takes bytes again only when a part of it is
// free; a peer that reads meanwhile is seen to.
func TestTheSocketTellsOfProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("reads for four seconds")
	}
	h, book, ln := listen(t, "unix", func(c *Config) { c.Limits.SendWithin = int64(600 * time.Millisecond) })
	p := dial(t, h, book, ln)
	const size = 300_000
	p.send(linktest.Sized('b', size), linktest.Frame('c', ""))
	got, piece := 0, make([]byte, 4000)
	for {
		n, err := p.c.Read(piece)
		if got += n; err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // between two writes the socket is emptied of 120 KB: 1.5 s
	}
	if want := size + 2*(linktest.HeaderBytes+1); got != want {
		t.Errorf("%d of %d bytes; closed: %v", got, want, h.Snapshot().Closed)
	}
}
