package exacta

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// TestDebugCommands: ApplyDiffSet bypasses the approval, so it is off where a peer may be far away
// (exacta §4.12). Payload and project are looked at before and after (exacta §3.6).
func TestDebugCommands(t *testing.T) {
	f := func(debug Debug, carrier Carrier, want string) {
		t.Helper()
		s := newServerOf(t, Config{Debug: debug})
		p := newPeerOver(t, s, 1, carrier)
		p.send(ask(1, "ApplyDiffSet", emptySet), ask(2, "ApplyDiffSet", `"diffs":[]`))
		p.want(2, want+" 102:IPC-009")
	}
	const on, off = "101:ST-003", "101:CFG-002"
	for carrier, want := range map[Carrier]string{Stdio: on, Unix: on, TCP: off, WebSocket: off} {
		f(DebugLocal, carrier, want)
		f(DebugOn, carrier, on)
		f(DebugOff, carrier, off)
	}
}

// TestOptions: the options of a server are in force, at the limit and one above (exacta §6.1).
func TestOptions(t *testing.T) {
	one, two := newRoot(t), newRoot(t)
	s := newServerOf(t, Config{MaxOpenProjects: 1, MaxInflightPerConnection: 2, AllowedRoots: []string{one, two}})
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+one+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, "OpenProject", `"path":"`+two+`"`))
	p.want(1, "102:RES-004")
	p.send(ask(3, "OpenProject", `"path":"`+newRoot(t)+`"`))
	p.want(1, "103:FS-003")
	p.sess.(*session).count(1)
	p.send(ask(4, "ApplyDiffSet", emptySet))
	p.want(2, "LogEntry2 104:ok")
	p.sess.(*session).count(1)
	p.send(ask(5, "ApplyDiffSet", emptySet))
	p.want(1, "105:RES-004")
}

// TestLogLevel: a LogEntry below the level is not an event (exacta §6.1).
func TestLogLevel(t *testing.T) {
	f := func(level, want string) {
		t.Helper()
		dir := newRoot(t)
		if err := os.Mkdir(filepath.Join(dir, ".exacta"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := newPeer(t, newServerOf(t, Config{Limits: projects.Limits{LogEventLevel: level}}), 1)
		p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
		p.want(1+len(want)/len("LogEntry1 "), want+"101:ok")
	}
	f("TRACE", "LogEntry1 ")
	f("INFO", "LogEntry1 ")
	f("WARN", "")
	f("ERROR", "")
}

// TestMessageBytes: a message of max_message_bytes is read, a longer one is discarded.
func TestMessageBytes(t *testing.T) {
	const most = 65_536
	p := newPeer(t, newServerOf(t, Config{MaxMessageBytes: most}), 1)
	line := ask(1, "Pause", `"execution_id":"`+pid+`"`)
	p.send(fmt.Sprintf("%*s", most, line))
	p.want(1, "101:ST-003")
	p.send(fmt.Sprintf("%*s", most+1, line), line)
	p.want(2, ":IPC-001 101:ST-003")
}

// TestLimitOfABuild is behind that of the build itself: of the request, else of the project.
func TestLimitOfABuild(t *testing.T) {
	for _, c := range []struct {
		asked, project int
		want           int64
	}{{0, 300, 330_000}, {0, 600, 630_000}, {60, 600, 90_000}} {
		if got := limit(codec.Build, &exactaArgs{Seconds: c.asked}, c.project); got != c.want {
			t.Errorf("%d, %d: %d ms", c.asked, c.project, got)
		}
	}
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	for _, open := range s.projects {
		if got := open.disk.ws.Config().BuildTimeout; got != defaultBuild {
			t.Errorf("a project without a configuration has %d s", got)
		}
	}
}
