//go:build !race

package workers

import (
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func TestNoAllocs(t *testing.T) {
	f := func(what string, fn func()) {
		t.Helper()
		fn()
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	call := &tool.Call{AID: "AID.T.v1", Input: []byte(`{"x":"\n"}`), State: new(sessionstate.State)}
	call.State.Set(0, sessionstate.Artifact{Content: "c"})
	buf := make([]byte, 0, 1024)
	f("a request", func() { buf = appendRequest(buf[:0], call, false) })
	empty := []byte(`{"ok":true,"status":"OK","error":"","ds_state":` + sessionstate.EmptyDelta + `}`)
	f("a reply without output", func() { parseReply(empty, call, false) })
}
