package stream

import (
	"testing"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// TestConnectionsAreListed follows one connection from its first bytes until it lingers.
func TestConnectionsAreListed(t *testing.T) {
	h, book, ln := listen(t, "tcp", func(c *Config) { c.Protocol, c.Name = "test", "other" })
	p := dialSmall(t, h, book, ln)
	p.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	p.want('e', "x")
	in := int64(len(linktest.Frame('q', "")) + len(linktest.Frame('e', "x")))
	kit.Until(t, "what was sent to be counted", func() bool { return h.Connections(nil)[0].BytesOut > 0 })
	c := h.Connections(nil)[0]
	if c.ID != "other-1" || c.Protocol != "test" || c.Listener != ln.Addr().String() || c.Peer != p.c.LocalAddr().String() ||
		c.BytesIn != in || c.InFlight != 1 || c.Streams != 0 || c.State != stateOpen || c.AgeSeconds < c.IdleSeconds {
		t.Errorf("%+v", c)
	}
	p.send(linktest.Sized('b', answerBytes), linktest.Frame('c', "bye"))
	kit.Until(t, "the connection to linger", func() bool {
		rows := h.Connections(nil)
		return len(rows) == 1 && rows[0].State == stateLingering
	})
	if c := h.Connections(nil)[0]; c.ID != "other-1" || c.BytesOut < answerBytes {
		t.Errorf("%+v", c)
	}
	_ = p.c.Close()
	kit.Until(t, "its end", func() bool { return len(h.Connections(nil)) == 0 })
}

func TestADrainIsListed(t *testing.T) {
	h, book, ln := listen(t, "unix", nil)
	p := dial(t, h, book, ln)
	p.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	p.want('e', "x")
	h.Drain()
	kit.Until(t, "the drain", func() bool { return h.Connections(nil)[0].State == stateDraining })
}
