//go:build !race

package ipc

import (
	"testing"

	"trunkline/engine/connection"
)

func TestAnnounceDoesNotAllocate(t *testing.T) {
	r := newRig(t)
	p, payload, out := r.connect(), []byte(`{"aid":"AID.NOOP.v1"}`), make([]byte, 0, 1<<16)
	f := func(what string) {
		t.Helper()
		if n := testing.AllocsPerRun(200, func() {
			if r.svc.bus.Wants("toolhost.tool.finished") {
				r.svc.bus.Emit("toolhost.tool.finished", "toolhost", payload)
				p.port.Rearm()
				out, _ = p.s.Pump(out[:0], connection.DefaultChunkBytes, r.now)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	f("nobody")
	p.send(request("o", "commbus", "Subscribe", `{"event_types":["other"]}`))
	f("somebody for another type")
	p.send(request("s", "commbus", "Subscribe", `{"event_types":["toolhost.tool.finished"]}`))
	f("a subscriber")
	if len(out) == 0 {
		t.Error("nothing came")
	}
}
