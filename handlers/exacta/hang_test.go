package exacta

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hanging is a disk that does not answer one system call until it is released.
type hanging struct {
	call   string // op and name
	met    chan struct{}
	answer chan struct{}
}

func (h *hanging) before(op, name string) error {
	if op+" "+name == h.call {
		h.met <- struct{}{}
		<-h.answer
	}
	return nil
}

// hang makes each such call of a server hang, one at a time.
func hang(s *Server, call string) *hanging {
	h := &hanging{call: call, met: make(chan struct{}), answer: make(chan struct{})}
	s.options.Before = h.before
	return h
}

// TestOpenOfADiskThatDoesNotAnswer: it fails with RES-003 and keeps no other project from being
// opened; once the disk answers, nothing is left of it.
func TestOpenOfADiskThatDoesNotAnswer(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	if err := os.MkdirAll(filepath.Join(dir, ".exacta"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".exacta", "config.json"), []byte(`{"schema_version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hang(s, "open config.json")
	late := make(chan time.Time)
	s.after = func(time.Duration) <-chan time.Time { return late }
	p := newPeer(t, s, 1)
	go func() { // a send returns when its request is in its place
		<-h.met
		late <- time.Now()
	}()
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(1, "101:RES-003")
	p.send(ask(2, "OpenProject", `"path":"`+newRoot(t)+`"`))
	p.want(2, "LogEntry1 102:ok")
	close(h.answer)
	go func() { <-h.met }()
	p.send(ask(3, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 103:ok")
}

// TestHungIsBounded: reads that do not end are counted, at the limit and above.
func TestHungIsBounded(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	s.hung.Store(maxHung)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(1, "101:RES-004")
	s.hung.Store(maxHung - 1)
	p.send(ask(2, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 102:ok")
}

// TestSetOfADiskThatDoesNotAnswer: while nothing has been written, a timeout is answered at once,
// the project goes on, and the set is not applied later.
func TestSetOfADiskThatDoesNotAnswer(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	h := hang(s, "open a.txt")
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	set := `"diffs":["--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"]`
	p.send(ask(2, "ApplyDiffSet", set+`,"timeout_ms":50`))
	<-h.met
	p.want(2, "ErrorRaised2 102:IPC-008")
	p.send(ask(3, "ApplyDiffSet", emptySet))
	p.want(2, "LogEntry3 103:ok")
	close(h.answer)
	p.send(ask(4, "CloseProject", ""))
	p.want(1, "104:ok")
	s.Close()
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "a\n" {
		t.Errorf("%q %v", text, err)
	}
}

// TestSetIsNotAnsweredBeforeItsEnd: once it renames, a timeout waits for what becomes of it: the
// answer is the same whenever the time is over (exacta §4.0.3).
func TestSetIsNotAnsweredBeforeItsEnd(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	s.options.Before = func(op, name string) error {
		if op+" "+name == "rename a.txt" {
			time.Sleep(100 * time.Millisecond) // longer than the limit of the request
		}
		return nil
	}
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, "ApplyDiffSet", `"diffs":["--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"],"timeout_ms":100`))
	got := p.until(2)
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if applied := strings.Contains(got, `"applied":true`); err != nil || applied != (string(text) == "b\n") || !applied && !strings.Contains(got, "IPC-008") {
		t.Errorf("%q %v\n%s", text, err, got)
	}
}

// TestControlsOfADiskThatDoesNotAnswer: those that wait for the queue of a project are counted, at
// the limit and above.
func TestControlsOfADiskThatDoesNotAnswer(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	h := hang(s, "create state.json.tmp")
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, "ExtractIntent", `"user_input":"build"`))
	<-h.met
	pause := func(n int) string {
		return strings.Replace(ask(2, "Pause", `"execution_id":"`+pid+`"`), "-000000000102", fmt.Sprintf("-0000000a%04x", n), 1)
	}
	n := s.cfg.MaxInflightPerConnection + maxControls
	for i := 1; i < n; i++ {
		p.send(pause(i))
	}
	if len(p.rest) > 0 {
		t.Fatalf("answered: %s", p.rest)
	}
	p.send(pause(n))
	p.want(1, fmt.Sprintf("a%04x:RES-004", n))
	go func() {
		for range h.met {
		}
	}()
	close(h.answer)
	p.until(2)
	s.Close()
	close(h.met)
}
