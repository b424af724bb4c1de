package exacta

import (
	"runtime"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
)

// bigSet is an ApplyDiffSet with a line of some size.
func bigSet(n, size int) string {
	line := ask(n, "ApplyDiffSet", `"diffs":["`)
	return strings.Replace(line, `"diffs":["`, `"diffs":["`+strings.Repeat("x", size-len(line)-2)+`"]`, 1)
}

// TestLongLines: a long line is read off the loop, and what follows it waits: the order stays
// (exacta §10).
func TestLongLines(t *testing.T) {
	p := newPeer(t, newServer(t), 1)
	f := func(size int, away bool) {
		t.Helper()
		line := bigSet(1, size) + "\n"
		used, out, v := p.sess.Feed([]byte(line), nil, connection.Instant{})
		if p.rest = append(p.rest, out...); len(line) != size+1 || away != (v == connection.Blocked) || away != (used == size) || away != (len(out) == 0) {
			t.Errorf("%d bytes: %d used, verdict %d, %q", len(line)-1, used, v, out)
		}
		if away {
			p.send("") // the end of the line
		}
		p.want(1, "101:ST-003")
	}
	f(bigLine, false)
	f(bigLine+1, true)

	dir := newRoot(t)
	one, two := bigSet(4, 1<<20), bigSet(5, 1<<20)
	p.send(pause(6)+one, strings.Repeat("{", bigLine+1), pause(7)+strings.Replace(two, "ApplyDiffSet", "Nope", 1), pause(8)+two)
	p.want(7, "106:ST-003 104:ST-003 :IPC-001 107:ST-003 105:IPC-003 108:ST-003 105:ST-003")
	p.send(ask(9, "OpenProject", `"path":"`+dir+`"`), one)
	p.want(4, "LogEntry1 109:ok ErrorRaised2 104:VAL-003")
	p.send(bigSet(4, 1<<20+1), one)
	p.want(2, "104:IPC-006 104:VAL-003")
}

// TestLongBadLines: they count like others.
func TestLongBadLines(t *testing.T) {
	c := listen(t, newServer(t), "tcp")()
	for range maxBadLines {
		c.send("{" + strings.Repeat("x", bigLine) + "\n")
		c.want(1, ":IPC-001")
	}
	c.wantEnd()
}

// TestIdleSessions: one that waits has no buffers (exacta §10).
func TestIdleSessions(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	const many = 1000
	sessions, out := make([]connection.Session, many), []byte(nil)
	before := heapBytes()
	for i := range sessions {
		sess := s.Open(connection.NewPort(uint64(i), ""), Unix, nil)
		sessions[i] = sess
		in := []byte(subscribeTo(2, "") + "\n" + pause(3))
		_, out, _ = sess.Feed(in, out[:0], connection.Instant{})
		out, _ = sess.Pump(out, 1<<20, connection.Instant{})
		if len(out) == 0 {
			t.Fatal("no answer")
		}
	}
	if each := (heapBytes() - before) / many; each > 4<<10 {
		t.Errorf("%d bytes for each session, want at most 4096", each)
	} else {
		t.Logf("%d bytes for each session", each)
	}
	for _, sess := range sessions {
		sess.Closed()
	}
}

// heapBytes returns how much the heap has that is in use.
func heapBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestLongLinesThatWait: long lines that wait to be read have a bound together; one more is
// refused, and its connection goes on.
func TestLongLinesThatWait(t *testing.T) {
	s := newServer(t)
	for range cap(s.readers) { // nothing is read
		s.readers <- struct{}{}
	}
	line := strings.Repeat(" ", s.cfg.MaxMessageBytes-1) + "x\n"
	const fit = unfinishedBytes / (8<<20 - connection.OwnInput) // of each, so much is not charged
	var sessions []connection.Session
	for n := range fit + 1 {
		p := newPeer(t, s, uint64(n+1))
		used, out, v := p.sess.Feed([]byte(line), nil, connection.Instant{})
		if refused := strings.Contains(string(out), "RES-002"); refused != (n == fit) || refused != (used == len(line)) ||
			refused == (v == connection.Blocked) {
			t.Errorf("line %d: %d taken, %s, %v", n, used, out, v)
		}
		sessions = append(sessions, p.sess)
	}
	for range cap(s.readers) {
		<-s.readers
	}
	kit.Until(t, "all lines are read", func() bool {
		for _, one := range sessions[:fit] {
			if used, _, v := one.Feed([]byte("\n"), nil, connection.Instant{}); used == 0 && v == connection.Blocked {
				return false
			}
		}
		return true
	})
	if used := s.input.Used(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}
