//go:build !race

package web

import (
	"bytes"
	"testing"
)

// TestNoAllocs: the path of messages and events allocates nothing here (exacta §10).
func TestNoAllocs(t *testing.T) {
	message := []byte("{\"a\":\n\"世界\"}")
	events := bytes.Repeat([]byte("{\"type\":\"event\"}\n"), 100)
	out := make([]byte, 0, 2*len(events))
	if n := testing.AllocsPerRun(100, func() {
		var x text
		x.take(message)
		x.end()
		out, _ = appendLines(out[:0], events, false)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
