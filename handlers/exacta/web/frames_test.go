package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/exacta"
)

// TestHandshake: who may connect, and what others are answered (exacta §2.2).
func TestHandshake(t *testing.T) {
	const token = "0123456789abcdef"
	plain := start(t, exacta.Config{WSOrigins: []string{"https://ui.example.org"}}, nil)
	guarded := start(t, exacta.Config{AuthToken: token}, nil)
	f := func(r *rig, request string, status int, headers ...string) {
		t.Helper()
		c, resp := dial(t, r.addr, request)
		defer c.Close()
		if resp.StatusCode != status {
			t.Errorf("%q: %s, want %d", request, resp.Status, status)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			if got := resp.Header.Get(name); got != value {
				t.Errorf("%q: %s is %q, want %q", request, name, got, value)
			}
		}
	}
	without := func(line string) string { return strings.Replace(handshake, line, "", 1) }
	f(plain, handshake, 101, "Sec-Websocket-Protocol: ")
	f(plain, strings.Replace(handshake, wsPath, "/exacta/v1/ws/", 1), 404)
	f(plain, strings.Replace(handshake, wsPath, "/", 1), 404)
	f(plain, strings.Replace(handshake, "GET", "POST", 1)+"Content-Length: 0\r\n", 405, "Allow: GET")
	f(plain, "GET "+wsPath+" HTTP/1.1\r\nHost: x\r\n", 426, "Sec-Websocket-Version: 13")
	f(plain, without("Upgrade: websocket\r\n"), 426, "Sec-Websocket-Version: 13", "Upgrade: websocket")
	f(plain, strings.Replace(handshake, "Version: 13", "Version: 8", 1), 426, "Sec-Websocket-Version: 13")
	f(plain, without("Sec-WebSocket-Version: 13\r\n"), 426)
	f(plain, without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), 400)
	f(plain, handshake+"X: "+strings.Repeat("x", maxHeaderBytes+8<<10)+"\r\n", 431)

	origin := func(o string, status int) {
		t.Helper()
		f(plain, handshake+"Origin: "+o+"\r\n", status)
	}
	for _, o := range []string{"http://localhost", "https://localhost:5173", "http://127.0.0.1:1", "https://[::1]", "http://[::1]:80", "tauri://localhost",
		"http://tauri.localhost", "https://tauri.localhost", "https://ui.example.org", "HTTPS://UI.example.org"} {
		origin(o, 101)
	}
	for _, o := range []string{"null", "http://localhost.evil.org", "http://evil.org", "ftp://localhost", "http://localhost:", "http://localhost:80x", "http://localhost:123456",
		"http://user@localhost", "http://localhost/", "http://127.0.0.1.evil.org", "http://127.0.0.2", "tauri://localhost:1", "http://ui.example.org",
		"https://ui.example.org:444", "", "http://localhost\r\nOrigin: http://evil.org"} {
		origin(o, 403)
	}
	f(plain, handshake+"Sec-WebSocket-Protocol: other, exacta.ipc.v1\r\n", 101, "Sec-Websocket-Protocol: exacta.ipc.v1")
	f(plain, handshake+"Sec-WebSocket-Protocol: other\r\n", 101, "Sec-Websocket-Protocol: ")

	encoded := base64.RawURLEncoding.EncodeToString([]byte(token))
	f(guarded, handshake, 401, "Www-Authenticate: Bearer")
	f(guarded, handshake+"Authorization: Bearer "+token+"\r\n", 101)
	f(guarded, handshake+"Authorization: Bearer "+token+"x\r\n", 401)
	f(guarded, handshake+"Authorization: Basic "+token+"\r\n", 401)
	f(guarded, handshake+"Sec-WebSocket-Protocol: exacta.ipc.v1, exacta.token."+encoded+"\r\n", 101, "Sec-Websocket-Protocol: exacta.ipc.v1")
	f(guarded, handshake+"Sec-WebSocket-Protocol: exacta.token."+encoded[1:]+"\r\n", 401)
	f(guarded, handshake+"Sec-WebSocket-Protocol: exacta.token.\r\n", 401)
	if n := guarded.Refused(); n != 5 {
		t.Errorf("%d were refused, want 5", n)
	}
	f(guarded, handshake+"Origin: http://evil.org\r\nAuthorization: Bearer "+token+"\r\n", 403)
}

// TestFaults: what breaks the protocol ends the connection with its code (exacta §2.2).
func TestFaults(t *testing.T) {
	const most = 64 << 10
	r := start(t, exacta.Config{MaxMessageBytes: most}, nil)
	f := func(what string, code int, frames ...[]byte) {
		t.Helper()
		c := open(t, r.addr)
		c.send(frames...)
		if got := c.closed(); got != code {
			t.Errorf("%s: closed with %d, want %d", what, got, code)
		}
	}
	text := []byte("{}")
	f("binary", 1003, masked(fin|0x2, text))
	f("unmasked", 1002, appendFrame(nil, fin|opText, text))
	f("an unmasked ping", 1002, appendFrame(nil, fin|opPing, nil))
	for _, bit := range []byte{0x40, 0x20, 0x10} {
		f("a reserved bit", 1002, masked(fin|bit|opText, text))
	}
	f("an unknown opcode", 1002, masked(fin|0x3, text))
	f("an unknown control frame", 1002, masked(fin|0xb, text))
	f("a continuation of nothing", 1002, masked(fin|opContinuation, text))
	f("a message within a message", 1002, masked(opText, text), masked(fin|opText, text))
	f("a ping in pieces", 1002, masked(opPing, nil))
	f("a long ping", 1002, masked(fin|opPing, make([]byte, 126)))
	f("a length with a sign", 1002, []byte{fin | opText, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4})
	f("a close of one byte", 1002, masked(fin|opClose, []byte{3}))
	f("a close with a code that is none", 1002, masked(fin|opClose, []byte{0x03, 0xed}))
	f("not UTF-8", 1007, masked(fin|opText, []byte("{\"\xff\"}")))
	f("half a character", 1007, masked(fin|opText, []byte("{\"\xe4\xb8")))
	f("half a character, then another", 1007, masked(opText, []byte("\xe4\xb8")), masked(fin|opContinuation, []byte("\x41")))
	f("a surrogate", 1007, masked(fin|opText, []byte("\xed\xa0\x80")))
	f("a long message", 1009, masked(fin|opText, bytes.Repeat([]byte(" "), most+1)))
	f("a long message in pieces", 1009, masked(opText, bytes.Repeat([]byte(" "), most)), masked(fin|opContinuation, []byte(" ")))
	f("a very long message", 1009, masked(opText, bytes.Repeat([]byte(" "), 8*most)))
	f("an end", 1000, masked(fin|opClose, []byte{0x03, 0xe8}))
}

// TestMessages: bad JSON is no fault, pieces are one message, and control frames come between them
// (exacta §2.2, §8).
func TestMessages(t *testing.T) {
	const most = 64 << 10
	r := start(t, exacta.Config{MaxMessageBytes: most}, nil)
	c := open(t, r.addr)
	say := func(s string) { c.send(masked(fin|opText, []byte(s))) }
	for range 40 { // more than a socket of lines may send
		say("{nope")
		c.want(`"request_id":null`, "IPC-001", `"invalid_json`)
	}
	for _, blank := range []string{"", " ", "\n", "\n\n", " \t\r\n "} {
		say(blank)
		c.want("IPC-001", `"invalid_json`)
	}
	say("[]")
	c.want("not_an_object")
	say(strings.Repeat(" ", most-2) + "[]")
	c.want("not_an_object")
	say("[]\n[]")
	c.want("invalid_json")

	build := request(1, "Build", `"project_id":"`+id(9)+`"`)
	say("\n" + strings.ReplaceAll(build, ",", ",\r\n") + "\n\n")
	c.want("ST-003", id(1))
	say(strings.Replace(build, "Build", "Bui\nld", 1))
	c.want("invalid_json")
	say(strings.Replace(build, "Build", "世界", 1))
	c.want("IPC-003", "Unknown command: 世界.")

	// One byte a frame, with pings between: each piece of a character too.
	long := []byte(strings.Replace(build, "Build", "世界", 1))
	for i := range long {
		first := byte(opContinuation)
		if i == 0 {
			first = opText
		}
		if i == len(long)-1 {
			first |= fin
		}
		c.send(masked(first, long[i:i+1]))
		if i%50 == 0 {
			c.send(masked(fin|opPing, fmt.Append(nil, i)), masked(fin|opPong, []byte("unasked")))
			if first, payload := c.frame(); first != fin|opPong || string(payload) != fmt.Sprint(i) {
				t.Fatalf("frame %x %q, want the answer to ping %d", first, payload, i)
			}
		}
	}
	c.want("IPC-003", "世界")
}

// echo is a session that answers each line with the same one.
type echo struct {
	connection.Session
	over bool
	line []byte
}

func (e *echo) Feed(in, out []byte, _ connection.Instant) (int, []byte, connection.Verdict) {
	line, _, whole := bytes.Cut(in, []byte("\n"))
	if !whole {
		return 0, out, connection.More
	}
	return len(line) + 1, append(append(out, e.line...), '\n'), connection.Yield
}
func (e *echo) Pump(out []byte, _ int, _ connection.Instant) ([]byte, bool) { return out, false }
func (e *echo) EOF(connection.Instant)                                      { e.over = true }
func (e *echo) Drain(connection.Instant)                                    { e.over = true }
func (e *echo) Load() connection.Load                                       { return connection.Load{Busy: true, Done: e.over} }
func (e *echo) Closed()                                                     {}

// TestLongAnswers: a line that leaves in pieces is one message.
func TestLongAnswers(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 65535, 65536, 300_000} {
		line := bytes.Repeat([]byte("x"), n)
		r := start(t, exacta.Config{}, func(c *config) { c.open = func(*connection.Port) connection.Session { return &echo{line: line} } })
		c := open(t, r.addr)
		for range 2 {
			c.send(masked(fin|opText, []byte("go")))
			var got []byte
			for want := byte(opText); ; want = opContinuation {
				first, payload := c.frame()
				got = append(got, payload...)
				if first&^fin != want {
					t.Fatalf("%d bytes: frame %x, want %x", n, first, want)
				}
				if first&fin != 0 {
					break
				}
			}
			if !bytes.Equal(got, line) {
				t.Fatalf("got %d bytes, want %d", len(got), n)
			}
		}
	}
}

// TestPings: a peer is pinged, and one that does not answer is left with 1001, unlike an older one
// that does (exacta §2.2).
func TestPings(t *testing.T) {
	t.Parallel() // it waits
	r := start(t, exacta.Config{}, func(c *config) { c.pingEvery, c.pongWithin = 10*time.Millisecond, 3*time.Second })
	awake, silent := open(t, r.addr), open(t, r.addr)
	left := make(chan int, 1)
	go func() { left <- silent.closed() }()
	for {
		first, payload := awake.frame()
		if first != fin|opPing {
			t.Fatalf("frame %x %q, want a ping", first, payload)
		}
		awake.send(masked(fin|opPong, payload))
		select {
		case code := <-left:
			if code != 1001 {
				t.Errorf("closed with %d, want 1001", code)
			}
			return
		default:
		}
	}
}

// TestTooManyConnections: one above the limit is closed with 1013.
func TestTooManyConnections(t *testing.T) {
	r := start(t, exacta.Config{MaxConnections: 2}, nil)
	one, two := open(t, r.addr), open(t, r.addr)
	two.send(masked(fin|opText, []byte("[]")))
	two.want("not_an_object")
	one.send(masked(fin|opText, []byte("[]")))
	one.want("not_an_object")
	if code := open(t, r.addr).closed(); code != 1013 || r.Refused() != 1 {
		t.Errorf("closed with %d, refused %d, want 1013 and 1", code, r.Refused())
	}
	one.send(masked(fin|opClose, []byte{0x03, 0xe8}))
	if code := one.closed(); code != 1000 {
		t.Errorf("closed with %d, want 1000", code)
	}
	for { // the slot is free as soon as the end was noticed
		c := open(t, r.addr)
		c.send(masked(fin|opText, []byte("[]")))
		if first, _ := c.frame(); first == fin|opText {
			break
		}
		c.Close()
	}
}

// TestServerEnds: all connections are closed with 1001, and new ones refused.
func TestServerEnds(t *testing.T) {
	r := start(t, exacta.Config{}, nil)
	c := open(t, r.addr)
	c.send(masked(fin|opText, []byte("[]")))
	c.want("not_an_object")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.stop(t)
	}()
	if code := c.closed(); code != 1001 {
		t.Errorf("closed with %d, want 1001", code)
	}
	<-stopped
	if _, err := http.Get("http://" + r.addr + wsPath); err == nil {
		t.Error("it still accepts")
	}
}

// TestSlowReader: a peer that does not read holds up no other one, and is served when it reads.
func TestSlowReader(t *testing.T) {
	line := bytes.Repeat([]byte("x"), 1<<20)
	r := start(t, exacta.Config{}, func(c *config) { c.open = func(*connection.Port) connection.Session { return &echo{line: line} } })
	slow, other := open(t, r.addr), open(t, r.addr)
	const asked = 24
	go func() {
		for range asked { // more than sockets take: this blocks until it is read
			if _, err := slow.Write(masked(fin|opText, []byte("go"))); err != nil {
				return
			}
		}
		_, _ = slow.Write(masked(fin|opPing, []byte("still there")))
	}()
	read := func(c *raw, n int) (pongs int) {
		t.Helper()
		for n > 0 {
			first, _ := c.frame()
			switch {
			case first == fin|opPong:
				pongs++
			case first&fin != 0:
				n--
			}
		}
		return pongs
	}
	for range 3 {
		other.send(masked(fin|opText, []byte("go")))
		read(other, 1)
	}
	if read(slow, asked) == 0 {
		if first, payload := slow.frame(); first != fin|opPong || string(payload) != "still there" {
			t.Errorf("frame %x %q, want the answer to the ping", first, payload)
		}
	}
}

// TestServerEndsWithoutItsPeers: one that neither reads nor answers is cut off when the time is up.
func TestServerEndsWithoutItsPeers(t *testing.T) {
	line := bytes.Repeat([]byte("x"), 1<<20)
	r := start(t, exacta.Config{}, func(c *config) { c.open = func(*connection.Port) connection.Session { return &echo{line: line} } })
	c := open(t, r.addr)
	for range 16 { // more than sockets take
		c.send(masked(fin|opText, []byte("go")))
	}
	if first, _ := c.frame(); first&^fin != opText {
		t.Fatalf("frame %x", first)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if r.sockets.conns != nil || r.sockets.host.Gate.Open() != 0 {
		t.Errorf("%d connections are left", r.sockets.host.Gate.Open())
	}
}

// TestPeerVanishes: a connection that breaks in the middle of a frame ends, and so does one with
// half a message.
func TestPeerVanishes(t *testing.T) {
	r := start(t, exacta.Config{}, nil)
	for _, end := range []string{"", "\x81", "\x81\x85\x01\x02", "\x01\x81\x01\x02\x03\x04\x05"} {
		c := open(t, r.addr)
		if _, err := io.WriteString(c, end); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}
