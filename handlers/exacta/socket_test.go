package exacta

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/stream"
)

// dialer connects to a server over one carrier.
type dialer func() *netPeer

// netPeer is a peer over a socket.
type netPeer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// listen serves s on a socket of a network until the test ends.
func listen(t testing.TB, s *Server, network string) dialer {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	host := stream.NewHost(stream.Config{Limits: s.SocketLimits(), Open: s.OpenSocket, Refuse: s.AppendRefused, MaxConnections: s.cfg.MaxConnections})
	served := make(chan error, 1)
	go func() { served <- host.ServeListener(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.Stop()
		_ = host.Shutdown(ctx)
		<-served
	})
	return func() *netPeer {
		t.Helper()
		c, err := net.Dial(network, ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return &netPeer{t, c, bufio.NewReaderSize(c, 1<<20)}
	}
}

func (c *netPeer) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next n lines, short.
func (c *netPeer) hear(n int) string {
	c.t.Helper()
	var out []string
	for range n {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("behind %v: %v", out, err)
		}
		out = append(out, short(strings.TrimSuffix(line, "\n")))
	}
	return strings.Join(out, " ")
}

func (c *netPeer) want(n int, want string) {
	c.t.Helper()
	if got := c.hear(n); got != want {
		c.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// wantEnd fails if anything comes before the end of the connection.
func (c *netPeer) wantEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil {
		c.t.Fatalf("before the end: %.300q, %v", rest, err)
	}
}

// pause is a request that is answered ST-003 at once.
func pause(n int) string { return ask(n, "Pause", `"execution_id":"`+pid+`"`) + "\n" }

// TestGuard: what a browser sends over TCP is not served, not even what looks like a request in it
// (exacta §2.1).
func TestGuard(t *testing.T) {
	s := newServer(t)
	tcp, unix := listen(t, s, "tcp"), listen(t, s, "unix")
	f := func(text string) {
		t.Helper()
		c := tcp()
		c.send(text)
		c.want(1, ":IPC-001")
		c.wantEnd()
	}
	f("GET / HTTP/1.1\r\n\r\n")
	f("POST / HTTP/1.1\r\nContent-Length: 300\r\n\r\n" + pause(1))
	f("\n \t\n\r\nGET")
	f("[]\n" + pause(1))
	f("\r\r\n")
	f("\x16\x03\x01") // TLS: no line ever ends
	f("\xef\xbb{}\n")
	c := tcp()
	for _, piece := range []string{" ", "\r", "\n", "\t ", "\r\n", " {", "}\n"} {
		c.send(piece)
	}
	c.want(1, ":IPC-001")
	c.send("GET / HTTP/1.1\n" + pause(1)) // not the first line
	c.want(2, ":IPC-001 101:ST-003")
	c = unix()
	c.send("GET / HTTP/1.1\n" + pause(2))
	c.want(2, ":IPC-001 102:ST-003")
}

// TestAuth: with a token the first line over TCP shows it, or the connection ends (exacta §2.1).
func TestAuth(t *testing.T) {
	const token = "0123456789abcdef"
	var log bytes.Buffer
	s := newServerOf(t, Config{AuthToken: token, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	tcp, unix := listen(t, s, "tcp"), listen(t, s, "unix")
	auth := func(token string) string { return `{"type":"auth","token":"` + token + `"}` + "\n" }
	refused := func(text string) {
		t.Helper()
		c := tcp()
		c.send(text)
		c.want(1, ":SEC-002")
		c.wantEnd()
	}
	refused(pause(1))
	refused(auth("0123456789abcdeg") + pause(1))
	refused(auth("0123456789abcde") + pause(1))
	refused(auth("") + pause(1))
	refused(`{"type":"auth","token":7}` + "\n")
	refused(`{"type":"auth"}` + "\n")
	refused(`{"type":"Auth","token":"` + token + `"}` + "\n")
	refused(`{"type":"auth","token":"x","token":"` + token + `"}` + "\n")
	refused("GET / HTTP/1.1\r\n\r\n")
	refused(strings.TrimSuffix(auth(token), "}\n") + "\n" + auth(token))

	c := tcp()
	c.send("\n \r\n" + `{"x":1,"type":"\u0061uth","token":"\u0030123456789abcdef"}` + "\r\n" + pause(1))
	if line, _ := c.in.ReadString('\n'); line != `{"ipc_version":"1.0","type":"ack","request_id":null,"sent_at":"2026-01-15T00:00:00.000Z","ok":true,"result":{},"error":null}`+"\n" {
		t.Errorf("got %s", line)
	}
	c.want(1, "101:ST-003")
	c.send(auth(token) + pause(2)) // once is enough
	c.want(2, ":IPC-001 102:ST-003")
	c = unix()
	c.send(pause(3))
	c.want(1, "103:ST-003")

	padded := func(n int) string { return strings.Repeat(" ", n-len(auth(token))+1) }
	f := func(n int, want string) {
		t.Helper()
		c := tcp()
		c.send(strings.TrimSuffix(auth(token), "}\n") + padded(n) + "}\n" + pause(4))
		c.want(1, want)
	}
	f(guestLine, ":ok")
	f(guestLine+1, ":SEC-002")
	if strings.Contains(log.String(), token) {
		t.Error("the token is in the log")
	}
}

// TestAuthInTime: a peer that has to show a token has only a while for it.
func TestAuthInTime(t *testing.T) {
	f := func(token string, carrier Carrier, timed bool) {
		t.Helper()
		p := newPeerOver(t, newServerOf(t, Config{AuthToken: token}), 1, carrier)
		if got := p.sess.Load().Until != 0; got != timed {
			t.Errorf("carrier %d, %d bytes of token: there is a time limit: %v", carrier, len(token), got)
		}
		if timed {
			p.send(`{"type":"auth","token":"` + token + `"}`)
			if p.sess.Load().Until != 0 {
				t.Error("the time limit stays")
			}
		}
	}
	f("", TCP, false)
	for carrier := range WebSocket + 1 {
		f("0123456789abcdef", carrier, carrier == TCP)
	}
}

// TestBadLines: a peer over a socket that sends no messages is cut off after 32 lines in a row; one
// valid envelope makes it start again (exacta §2.1).
func TestBadLines(t *testing.T) {
	s := newServer(t)
	bad := strings.Repeat("{\n", maxBadLines-1)
	answers := strings.TrimSuffix(strings.Repeat(":IPC-001 ", maxBadLines-1), " ")
	version := strings.Replace(pause(2), `"1.0"`, `"2.0"`, 1)
	for _, network := range []string{"tcp", "unix"} {
		c := listen(t, s, network)()
		c.send(bad + pause(1) + bad + version)
		c.want(2*maxBadLines, answers+" 101:ST-003 "+answers+" 102:IPC-002")
		c.send("\n" + "{\n" + pause(3))
		c.want(1, ":IPC-001")
		c.wantEnd()
	}
	p := newPeer(t, s, 1)
	p.send(bad + bad + pause(4))
	p.hear(2*maxBadLines - 2)
	p.want(1, "104:ST-003")
}

// TestDiscardLimit: a line over a socket that is eight times too long ends the connection, at one
// byte more and however it is cut (exacta §2.1).
func TestDiscardLimit(t *testing.T) {
	const most = 65_536
	s := newServerOf(t, Config{MaxMessageBytes: most})
	tcp := listen(t, s, "tcp")
	f := func(size int, more string, open bool) {
		t.Helper()
		for _, network := range []Carrier{TCP, Unix} {
			p := newPeerOver(t, s, 1, network)
			line, held, closed := "{"+strings.Repeat("x", size-1)+more, "", false
			for len(line) > 0 && !closed {
				n := min(len(line), 50_000)
				held, line = held+line[:n], line[n:]
				used, out, v := p.sess.Feed([]byte(held), nil, connection.Instant{})
				held, closed = held[used:], v == connection.Close
				p.rest = append(p.rest, out...)
			}
			if closed == open {
				t.Errorf("%d bytes and %q: closed: %v", size, more, closed)
			}
			if p.want(1, ":IPC-001"); open {
				p.send(pause(1))
				p.want(1, "101:ST-003")
			}
		}
	}
	f(discardTimes*most, "\n", true)
	f(discardTimes*most+1, "", false)
	f(discardTimes*most+1, "\n", false)
	c := tcp()
	go func() { _, _ = io.WriteString(c, "{"+strings.Repeat("x", 20*most)) }()
	c.want(1, ":IPC-001")
	if _, err := io.ReadAll(c.in); err != nil && !strings.Contains(err.Error(), "reset") { // it may not have read all
		t.Error(err)
	}
}

// TestHalfClosed: a peer that ends its side is not served on; what was read runs, an unfinished
// line does not (exacta §2.1, D31).
func TestHalfClosed(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	unix := listen(t, s, "unix")
	a := unix()
	a.send(ask(1, "OpenProject", `"path":"`+dir+`"`) + "\n")
	a.want(2, "LogEntry1 101:ok")
	b := unix()
	b.send(ask(2, "ApplyDiffSet", emptySet) + "\n" + ask(3, "ApplyDiffSet", emptySet))
	if err := b.Conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(b.in); err != nil { // an answer may have been faster
		t.Fatal(err)
	}
	a.want(1, "LogEntry2")
	a.send(ask(2, "ApplyDiffSet", emptySet) + "\n" + ask(4, "ApplyDiffSet", emptySet) + "\n")
	a.want(3, "102:ok LogEntry3 104:ok")
}

// TestTooManyConnections: one more gets an answer and is closed.
func TestTooManyConnections(t *testing.T) {
	tcp := listen(t, newServerOf(t, Config{MaxConnections: 2}), "tcp")
	for i := range 2 {
		c := tcp()
		c.send(pause(i))
		c.hear(1)
	}
	c := tcp()
	c.want(1, ":RES-004")
	c.wantEnd()
}

// TestCarriersShareProjects: connections of two owners, which number them alike, get the events of
// their own requests only.
func TestCarriersShareProjects(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	one, two := listen(t, s, "unix")(), listen(t, s, "unix")()
	one.send(ask(1, "OpenProject", `"path":"`+dir+`"`) + "\n")
	one.want(2, "LogEntry1 101:ok")
	one.send(subscribeTo(2, `,"mode":"none"`) + "\n")
	one.want(1, "102:ok")
	two.send(ask(3, "ApplyDiffSet", emptySet) + "\n")
	two.want(2, "LogEntry2 103:ok")
	one.send(ask(4, "ApplyDiffSet", emptySet) + "\n")
	one.want(2, "LogEntry3 104:ok")
	two.send(ask(5, "ApplyDiffSet", emptySet) + "\n")
	two.want(2, "LogEntry4 105:ok")
}

// TestSlowReader: a peer that does not read loses no event as long as the journal has them, delays
// nothing, and is closed when it cannot go on without a gap (exacta §2.5).
func TestSlowReader(t *testing.T) {
	const most = 100
	f := func(events int, kept bool) {
		t.Helper()
		s, dir := newServerOf(t, Config{Limits: projects.Limits{JournalEvents: most}}), newRoot(t)
		host := stream.NewHost(stream.Config{Limits: s.SocketLimits(), Open: func(p *connection.Port) connection.Session { return s.Open(p, Unix, nil) }})
		mine, theirs := net.Pipe() // it holds nothing
		served := make(chan error, 1)
		go func() { served <- host.Serve(theirs, "pipe") }()
		defer func() {
			_ = mine.Close()
			<-served
			_ = host.Shutdown(t.Context())
		}()
		p := newPeer(t, s, 1)
		p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
		p.want(2, "LogEntry1 101:ok")
		slow := &netPeer{t, mine, bufio.NewReader(mine)}
		slow.send(subscribeTo(2, `,"after_stream_seq":0`) + "\n")
		slow.want(1, "102:ok")
		last := 1
		for i := range events {
			p.send(ask(3+i, "OpenProject", `"path":"`+dir+`"`))
			last++
			p.want(2, fmt.Sprintf("LogEntry%d 1%02x:ok", last, 3+i))
		}
		if !kept { // it is closed although it never reads
			for s.Stats().Sessions[Unix] != 0 {
				time.Sleep(time.Millisecond)
			}
		}
		text, err := io.ReadAll(slow.until(last))
		if got := bytes.Count(text, []byte(`"event":"LogEntry"`)); kept && got != last || !kept && got == last || err != nil {
			t.Errorf("%d of %d events, %v", got, last, err)
		}
	}
	f(most-1, true)
	f(2*most, false)
}

// until returns what comes up to the event number seq, or to the end of the connection.
func (c *netPeer) until(seq int) io.Reader {
	var all bytes.Buffer
	for {
		line, err := c.in.ReadBytes('\n')
		all.Write(line)
		if err != nil || bytes.Contains(line, fmt.Appendf(nil, `"stream_seq":%d,`, seq)) {
			return &all
		}
	}
}

// TestBadLinesKeepNothing: any number of them leaves the heap as it is (exacta §10).
func TestBadLinesKeepNothing(t *testing.T) {
	p := newPeerOver(t, newServer(t), 1, TCP)
	var in []byte
	for _, bad := range []string{"{", "{}", `{"ipc_version":"1.0","a":1,"a":2}`, "[]", `{"x":"\ud800"}`, strings.Repeat("x", 3000), `{"ipc_version":"2.0"}`} {
		in = append(append(in, strings.Repeat(bad+"\n", 19)...), pause(1)...)
	}
	out := []byte(nil)
	feed := func(times int) {
		for range times {
			for at := 0; at < len(in); {
				used, grown, v := p.sess.Feed(in[at:], out[:0], connection.Instant{})
				if at, out = at+used, grown; v == connection.Close {
					t.Fatal("closed in spite of good lines")
				}
			}
		}
	}
	feed(10)
	before := heapBytes()
	feed(100_000 / 140)
	if grown := heapBytes() - before; grown > 1<<20 {
		t.Errorf("%d bytes more", grown)
	}
}

// TestTooManyAnswers: a peer that does not read its answers is closed, at the limit and one byte
// more (exacta §2.5).
func TestTooManyAnswers(t *testing.T) {
	s := newServer(t)
	f := func(bytes int, lost bool) {
		t.Helper()
		p := newPeerOver(t, s, 1, Unix)
		p.sess.(*session).send(outgoing{Answer: projects.Answer{Line: make([]byte, bytes)}})
		if got := p.sess.Load().Until != 0; got != lost {
			t.Errorf("%d bytes: closed: %v", bytes, got)
		}
		_, _, v := p.sess.Feed([]byte(pause(1)), nil, connection.Instant{})
		if got := v == connection.Close; got != lost {
			t.Errorf("%d bytes: verdict %d", bytes, v)
		}
	}
	f(queuedBytes, false)
	f(queuedBytes+1, true)
}
