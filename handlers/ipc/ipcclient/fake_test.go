package ipcclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"testing"

	"go.uber.org/goleak"

	"trunkline/codec/frame"
	"trunkline/codec/transcode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the server's end of a conversation, played by the test.
type peer struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

// request is one decoded REQUEST frame.
type request struct {
	ID      string          `json:"id"`
	Service string          `json:"service"`
	Method  string          `json:"method"`
	Body    json.RawMessage `json:"body"`
}

// dialPipe returns a Conn and its peer over an unbuffered pipe.
func dialPipe(t testing.TB, opts ...Option) (*Conn, *peer) {
	near, far := net.Pipe()
	return attach(t, near, far, opts...)
}

func attach(t testing.TB, near, far net.Conn, opts ...Option) (*Conn, *peer) {
	c := New(near, opts...)
	t.Cleanup(func() {
		far.Close()
		c.Close()
	})
	return c, newPeer(t, far)
}

func newPeer(t testing.TB, nc net.Conn) *peer { return &peer{t: t, nc: nc, r: bufio.NewReader(nc)} }

// dialLoopback is dialPipe over a real socket.
func dialLoopback(t testing.TB, network, listen string, opts ...Option) (*Conn, *peer) {
	t.Helper()
	l, err := net.Listen(network, listen)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	if network == "unix" {
		addr = "unix://" + addr
	}
	c, err := Dial(t.Context(), addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		far.Close()
		c.Close()
	})
	return c, newPeer(t, far)
}

// want reads the next request and checks what it calls.
func (p *peer) want(method string) request {
	p.t.Helper()
	kind, payload, err := readFrame(p.r, new(bytes.Buffer), 1<<30)
	if err != nil {
		p.t.Fatalf("no request %s: %v", method, err)
	}
	text, err := transcode.AppendJSON(nil, payload)
	if err != nil {
		p.t.Fatal(err)
	}
	var req request
	if err := json.Unmarshal(text, &req); err != nil {
		p.t.Fatal(err)
	}
	if got := req.Service + "." + req.Method; kind != frame.Request || got != method {
		p.t.Fatalf("got %#x %s, want request %s", kind, text, method)
	}
	return req
}

// sendJSON sends one frame with the JSON twin's payload.
func (p *peer) sendJSON(kind frame.Type, twin string) {
	p.t.Helper()
	payload, err := transcode.EncodeJSON([]byte(twin))
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(frame.Append(nil, kind, nil, payload))
}

func (p *peer) respond(id, body string) {
	p.t.Helper()
	p.sendJSON(frame.Response, `{"id":"`+id+`","ok":true,"body":`+body+`}`)
}

func (p *peer) refuse(id, errorMap string) {
	p.t.Helper()
	p.sendJSON(frame.Error, `{"id":"`+id+`","ok":false,"error":`+errorMap+`}`)
}

func (p *peer) chunk(id, body string) {
	p.t.Helper()
	p.sendJSON(frame.StreamChunk, `{"id":"`+id+`","body":`+body+`}`)
}

func (p *peer) end(id string) {
	p.t.Helper()
	p.sendJSON(frame.StreamEnd, `{"id":"`+id+`"}`)
}

func (p *peer) raw(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatalf("cannot write: %v", err)
	}
}

// serve answers every request with what reply returns for it, until the connection ends.
func (p *peer) serve(reply func(req request) (kind frame.Type, twin string)) (stopped <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			_, payload, err := readFrame(p.r, new(bytes.Buffer), 1<<30)
			if err != nil {
				return
			}
			text, _ := transcode.AppendJSON(nil, payload)
			var req request
			json.Unmarshal(text, &req)
			kind, twin := reply(req)
			out, _ := transcode.EncodeJSON([]byte(twin))
			if _, err := p.nc.Write(frame.Append(nil, kind, nil, out)); err != nil {
				return
			}
		}
	}()
	return done
}

// outcome is what a call running beside the test returned.
type outcome struct {
	body []byte
	err  error
}

// start makes a call beside the test.
func start(c *Conn, method string, t testing.TB) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		body, err := c.Call(t.Context(), "kernel", method, nil)
		ch <- outcome{body, err}
	}()
	return ch
}

func twin(t testing.TB, body []byte) string {
	t.Helper()
	text, err := transcode.AppendJSON(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func wantConnError(t testing.TB, err, reason error) {
	t.Helper()
	var lost *ConnError
	if !errors.As(err, &lost) || !errors.Is(err, reason) {
		t.Fatalf("got %v, want a ConnError of %v", err, reason)
	}
}
