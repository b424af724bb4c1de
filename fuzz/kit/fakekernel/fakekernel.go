// Package fakekernel is a kernel IPC server for the tests of the benchmark programs: it splits
// frames, decodes each request and lets the test answer it. It runs inside the test's process, is
// slow, and knows nothing about processes.
package fakekernel

import (
	"net"
	"sync"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// Request is one decoded request.
type Request struct {
	ID, Method string
	Body       map[string]any
}

// Str returns a string member of the body, "" if there is none.
func (r Request) Str(key string) string {
	s, _ := r.Body[key].(string)
	return s
}

// Server answers requests until the test ends.
type Server struct {
	Addr string

	answer func(Request) []byte
	chop   int

	mu   sync.Mutex
	seen map[string]int
}

// Start listens on a free port. answer is called for one request at a time, over all connections,
// and returns the bytes to send; nil closes the connection. Nil answers everything with OK. chop
// limits the bytes per write; 0 is no limit.
func Start(t *testing.T, chop int, answer func(Request) []byte) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(r Request) []byte { return OK(r.ID) }
	}
	s := &Server{Addr: ln.Addr().String(), answer: answer, chop: chop, seen: map[string]int{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			wg.Go(func() { s.serve(t, c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return s
}

// Count returns how many requests of a method were seen.
func (s *Server) Count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[method]
}

func (s *Server) serve(t *testing.T, c net.Conn) {
	defer c.Close()
	var held, out []byte
	buf := make([]byte, 8<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		held, out = append(held, buf[:n]...), out[:0]
		for {
			kind, payload, n := frame.Split(held, len(held))
			if n <= 0 {
				break
			}
			reply := s.reply(t, kind, payload)
			if reply == nil {
				return
			}
			out, held = append(out, reply...), held[n:]
		}
		if !s.write(c, out) {
			return
		}
	}
}

// write sends out in pieces, so that the client sees frames cut anywhere.
func (s *Server) write(c net.Conn, out []byte) bool {
	for len(out) > 0 {
		n := len(out)
		if s.chop > 0 {
			n = min(n, s.chop)
		}
		if _, err := c.Write(out[:n]); err != nil {
			return false
		}
		out = out[n:]
	}
	return true
}

func (s *Server) reply(t *testing.T, kind frame.Type, payload []byte) []byte {
	m, rest, err := msgp.ReadMapStrIntfBytes(payload, nil)
	body, ok := m["body"].(map[string]any)
	if kind != frame.Request || err != nil || len(rest) > 0 || !ok {
		t.Errorf("the client sent a bad request: type 0x%02X, %v, %d bytes behind the value", kind, err, len(rest))
		return nil
	}
	r := Request{ID: m["id"].(string), Method: m["method"].(string), Body: body}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[r.Method]++
	return s.answer(r)
}

// Frame returns one frame of any type.
func Frame(typ byte, payload []byte) []byte {
	return frame.Append(nil, frame.Type(typ), nil, payload)
}

// OK returns a RESPONSE frame with an empty body.
func OK(id string) []byte {
	return Frame(byte(frame.Response), mpack.AppendMap(mpack.AppendResponseHead(nil, []byte(id)), 0))
}

// Failure returns an ERROR frame.
func Failure(id, code, message string) []byte {
	return Frame(byte(frame.Error), mpack.AppendError(nil, []byte(id), code, message, mpack.Extras{}))
}
