package stream

import (
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// TestDrop: a connection that is served is closed, and one that lingers.
func TestDrop(t *testing.T) {
	h, book, ln := listen(t, "tcp", func(c *Config) { c.Protocol, c.Name = "test", "other" })
	served, lingers := dial(t, h, book, ln), dialSmall(t, h, book, ln)
	served.send(linktest.Frame('e', "x"))
	served.want('e', "x")
	lingers.send(linktest.Sized('b', answerBytes), linktest.Frame('c', "bye"))
	kit.Until(t, "the connection to linger", func() bool {
		rows := h.Connections(nil)
		return len(rows) == 2 && rows[1].State == stateLingering
	})
	f := func(name string, want bool) {
		t.Helper()
		if got := h.Drop(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("other-3", false)
	f("test-1", false)
	f("other-1", true)
	f("other-1", false)
	served.wantClosed(connection.ReasonDropped)
	f("other-2", true)
	kit.Until(t, "their end", func() bool { return len(h.Connections(nil)) == 0 })
}
