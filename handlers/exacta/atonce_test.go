package exacta

import (
	"runtime"
	"strings"
	"testing"
)

// TestRefusedAtOnce: what the state refuses is answered without the queue where nothing is before
// it, and otherwise behind what is (exacta §2.4).
func TestRefusedAtOnce(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	one, two := newPeer(t, s, 1), newPeer(t, s, 2)
	one.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	one.want(2, "LogEntry1 101:ok")
	p := s.project(parsed(pid))
	pause := func(n int) string { return ask(n, "Pause", `"execution_id":"`+pid+`"`) }
	f := func(n int, atOnce bool, want string) {
		t.Helper()
		for p.waiting.Load() > 0 { // its answer was sent before
			runtime.Gosched()
		}
		one.send(pause(n))
		if (len(one.rest) > 0) != atOnce {
			t.Fatalf("answered at once: %s", one.rest)
		}
		one.want(len(strings.Fields(want)), want)
	}
	f(2, true, "102:ST-001")

	// An event that the connection does not have yet comes first.
	two.send(ask(3, "ApplyDiffSet", emptySet))
	two.want(2, "LogEntry2 103:ok")
	f(4, false, "LogEntry2 104:ST-001")
	f(5, true, "105:ST-001")
	one.send(pause(4))
	one.want(1, "104:ST-001")

	// While another request has its turn, the next one waits for its own.
	p.turn.Lock()
	one.send(pause(6))
	if len(one.rest) > 0 {
		t.Errorf("answered in the turn of another: %s", one.rest)
	}
	p.turn.Unlock()
	one.want(1, "106:ST-001")
	f(7, true, "107:ST-001")
}
