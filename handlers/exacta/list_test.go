package exacta

import (
	"strings"
	"testing"
)

// TestEvents: the last events of an open project are there as lines, as many as are asked for.
func TestEvents(t *testing.T) {
	s := newServer(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+newRoot(t)+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, "ApplyDiffSet", `"diffs":["--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"]`))
	p.want(3, "Progress2 LogEntry3 102:ok")
	open := s.Projects()[0]
	f := func(most int, first, last string) {
		t.Helper()
		got, lines, ok := s.Events(strings.ToUpper(open.ID), most)
		if !ok || got != open {
			t.Errorf("Events(%d) = %+v, %v, want %+v", most, got, ok, open)
		}
		all := strings.Split(strings.TrimSuffix(string(lines), "\n"), "\n")
		if len(all) != min(most, int(open.Last)) || !strings.Contains(all[0], first) || !strings.Contains(all[len(all)-1], last) {
			t.Errorf("Events(%d) has %d lines: %q", most, len(all), all)
		}
	}
	f(1, `"event":"LogEntry"`, `"stream_seq":3`)
	f(2, `"event":"Progress"`, `"stream_seq":3`)
	f(3, `"stream_seq":1`, `"stream_seq":3`)
	f(4, `"stream_seq":1`, `"stream_seq":3`)
	for _, id := range []string{"", "nothing", strings.Repeat("0", 36), "00000000-0000-4000-8000-000000000001"} {
		if _, _, ok := s.Events(id, 1); ok {
			t.Errorf("project %q is open", id)
		}
	}
}
