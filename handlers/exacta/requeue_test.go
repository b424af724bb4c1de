package exacta

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"trunkline/fuzz/kit"
)

// TestClosedAndOpened: an open right behind a close, again and again: its event comes each time.
func TestClosedAndOpened(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(0, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 100:ok")
	for i := 1; i <= 100; i++ {
		p.send(ask(2*i-1, "CloseProject", ""), ask(2*i, "OpenProject", `"path":"`+dir+`"`))
		p.want(3, fmt.Sprintf("1%02x:ok LogEntry%d 1%02x:ok", 2*i-1, i+1, 2*i))
	}
}

// endlessBuild makes each build run until it is cancelled, and returns what waits until one runs.
func endlessBuild(t *testing.T) (running func()) {
	t.Helper()
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	script := "#!/bin/sh\n: >'" + started + "'\nwhile :; do sleep 1; done\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() {
		t.Helper()
		kit.Until(t, "the build runs", func() bool {
			_, err := os.Stat(started)
			return err == nil
		})
	}
}

// TestBehindAnOpenThatWaits: what is sent behind a CloseProject and an OpenProject is done in the
// project that is opened, also while a build keeps all of them waiting (exacta §2.1).
func TestBehindAnOpenThatWaits(t *testing.T) {
	running := endlessBuild(t)
	for _, builds := range []bool{false, true} {
		s, dir := newServer(t), newRoot(t)
		p, other := newPeer(t, s, 1), newPeer(t, s, 2)
		p.send(ask(0, "OpenProject", `"path":"`+dir+`"`))
		p.want(2, "LogEntry1 100:ok")
		burst := []string{
			ask(2, "CloseProject", ""), ask(3, "OpenProject", `"path":"`+dir+`"`), ask(4, "ExtractIntent", `"user_input":"append \"x\" to a.txt"`),
			ask(5, "CloseProject", ""), ask(6, "OpenProject", `"path":"`+dir+`"`), ask(7, "ApplyDiffSet", emptySet),
		}
		if builds {
			p.send(ask(1, "Build", ""))
			p.want(1, "Progress2")
			running()
			p.send(burst[:2]...)
			other.send(ask(8, "ApplyDiffSet", emptySet)) // of another connection, behind the open
			p.send(burst[2:]...)
			p.send(ask(9, "Cancel", `"execution_id":"00000000-0000-4000-8000-000000000101"`)) // never waits
			p.want(4, "ErrorRaised3 101:IPC-010 109:ok 102:ok")
			p.want(9, "LogEntry4 103:ok LogEntry5 StateChanged6 StateChanged7 LogEntry8 104:ok 105:ok LogEntry9")
			p.want(3, "106:ok LogEntry10 107:ok")
			other.want(2, "LogEntry5 108:ok")
			continue
		}
		p.send(burst...)
		p.want(12, "102:ok LogEntry2 103:ok StateChanged3 StateChanged4 LogEntry5 104:ok 105:ok LogEntry6 106:ok LogEntry7 107:ok")
	}
}

// TestBehindAnOpenThatFails: what waits for a project that cannot be opened again has none.
func TestBehindAnOpenThatFails(t *testing.T) {
	running := endlessBuild(t)
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(0, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 100:ok")
	p.send(ask(1, "Build", ""))
	p.want(1, "Progress2")
	running() // a build whose directory has gone before could not be started
	p.send(ask(2, "CloseProject", ""), ask(3, "OpenProject", `"path":"`+dir+`"`), ask(4, "ApplyDiffSet", emptySet))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p.send(ask(5, "Cancel", `"execution_id":"00000000-0000-4000-8000-000000000101"`))
	p.want(6, "ErrorRaised3 101:IPC-010 105:ok 102:ok 103:FS-001 104:ST-003")
	p.send(ask(6, "ApplyDiffSet", emptySet))
	p.want(1, "106:ST-003")
}

// TestWaitingIsBounded: at the limit requests wait for a project, above it they are refused.
func TestWaitingIsBounded(t *testing.T) {
	s := newServer(t)
	id := parsed(pid)
	s.again[id] = nil
	for n := range maxBehind {
		if f := s.post(id, nil, event{late: new(exactaRequest)}); f != nil {
			t.Fatal(n, f)
		}
	}
	if f := s.post(id, nil, event{late: new(exactaRequest)}); f == nil || f.Code != "RES-004" {
		t.Error(f)
	}
	if r := s.nextOpen(id); r != nil || s.reopens(id) {
		t.Error("something waits")
	}
	if f := s.post(id, nil, event{late: new(exactaRequest)}); f == nil || f.Code != "ST-003" {
		t.Error(f)
	}
}
