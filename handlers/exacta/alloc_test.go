//go:build !race

package exacta

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"trunkline/engine/connection"
)

// TestNoAllocs: refusals and repeats take nothing from the heap (exacta §10).
func TestNoAllocs(t *testing.T) {
	for _, carrier := range []Carrier{Stdio, TCP} {
		testNoAllocs(t, carrier)
	}
}

func testNoAllocs(t *testing.T, carrier Carrier) {
	s, dir := newServerOf(t, Config{Debug: DebugOn}), newRoot(t)
	p := newPeerOver(t, s, 1, carrier)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "ApplyDiffSet", emptySet))
	p.want(4, "LogEntry1 101:ok LogEntry2 102:ok")
	p.send(ask(3, "Pause", `"execution_id":"`+pid+`"`))
	p.want(1, "103:ST-001")
	out := make([]byte, 0, 1<<16)
	for _, line := range []string{
		ask(2, "ApplyDiffSet", emptySet), ask(3, "Pause", `"execution_id":"`+pid+`"`), ask(3, "Pause", `"execution_id":"`+pid+`","timeout_ms":7`),
		ask(3, "Resume", `"execution_id":"`+pid+`"`), ask(4, "Nope", ""), ask(4, "Build", `"timeout_ms":0`), "{", "[]", " ",
		`{"ipc_version":"1.0","type":"request","request_id":"00000000-0000-4000-8000-0000000001ff","sent_at":"2026-01-15T00:00Z","command":"Pause","payload":{"project_id":"00000000-0000-4000-8000-0000000001ff","execution_id":"00000000-0000-4000-8000-0000000001ff"}}`,
	} {
		in := []byte(line + "\n")
		p.sess.(*session).bad = -1 << 30 // the limit of bad lines is far
		run := func() { _, out, _ = p.sess.Feed(in, out[:0], connection.Instant{}) }
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", line, n)
		}
	}
}

// TestNoAllocsOfRefusals: a request that the state of its project refuses takes nothing from the
// heap either, though its answer is stored (exacta §4.0.4, §10).
func TestNoAllocsOfRefusals(t *testing.T) {
	p := newPeer(t, newServer(t), 1)
	p.send(ask(1, "OpenProject", `"path":"`+newRoot(t)+`"`))
	p.want(2, "LogEntry1 101:ok")
	in := []byte(ask(2, "Pause", `"execution_id":"`+pid+`"`) + "\n")
	id := in[bytes.Index(in, []byte("00000000-")):]
	out := make([]byte, 0, 1<<12)
	n, name := uint32(0), [4]byte{}
	run := func() {
		n++
		binary.BigEndian.PutUint32(name[:], n)
		hex.Encode(id, name[:])
		_, out, _ = p.sess.Feed(in, out[:0], connection.Instant{})
	}
	for range 10_000 { // as many answers are kept as may be
		run()
	}
	if !bytes.Contains(out, []byte(`"code":"ST-001"`)) {
		t.Fatalf("%s", out)
	}
	if n := testing.AllocsPerRun(10_000, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
