package stream

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/kit/linktest"
)

// TestEveryRefusedPeerIsTold brings more peers at once than there are goroutines to wait for them.
func TestEveryRefusedPeerIsTold(t *testing.T) {
	const crowd = 300
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			h, book, ln := listen(t, network, func(c *Config) { c.MaxConnections, c.Refuse = 1, full })
			p := dial(t, h, book, ln)
			p.send(linktest.Frame('e', "in"))
			p.want('e', "in")
			var wg sync.WaitGroup
			for range crowd {
				wg.Go(func() { wantRefusal(t, ln) })
			}
			wg.Wait()
			if n := h.Snapshot().Refused; n != crowd {
				t.Errorf("%d refused, want %d", n, crowd)
			}
		})
	}
}

func wantRefusal(t *testing.T, ln net.Listener) {
	c, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
	if err != nil {
		t.Errorf("cannot connect: %v", err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if cmd, body, err := linktest.Read(c); err != nil || cmd != 'F' || string(body) != "full" {
		t.Errorf("got %c %q, %v", cmd, body, err)
		return
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the refusal: %v, want the end", err)
	}
}
