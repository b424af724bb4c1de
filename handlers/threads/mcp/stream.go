package mcp

import (
	"context"
	"net/http"
	"sync"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/method"
)

// Call runs a method with args, the text of its arguments. It returns the result, or the error
// envelope and failed.
type Call func(ctx context.Context, row *method.Row, args []byte) (text []byte, failed bool)

// Stream answers the messages of a client on a stream of texts, which is not one of HTTP. Its
// methods may be called from any goroutine.
type Stream struct {
	rows []method.Row
	sdk  http.Handler
	run  Call

	mu      sync.Mutex
	running map[string]context.CancelFunc // by the id of the call, as the client wrote it
}

// NewStream returns a Stream with a tool for each row.
func NewStream(rows []method.Row, run Call) *Stream {
	return &Stream{rows: rows, sdk: newSDK(rows, false), run: run, running: map[string]context.CancelFunc{}}
}

// MaxMessage bounds a text that Answer takes: an input of the largest size, and what is around it.
const MaxMessage = maxBody

// Answer returns the answer to a text, which is a message or a batch; none to notifications.
func (s *Stream) Answer(ctx context.Context, text []byte) []byte {
	x := &responder{ctx: ctx, rows: s.rows, stream: true}
	x.to = &streamCalls{s, x}
	x.respond(text)
	return x.out
}

// TooLong returns the answer to a text over MaxMessage, whose id may be all that is known.
func (s *Stream) TooLong(id []byte) []byte {
	var m message
	text := append(append([]byte(`{"id":`), id...), '}')
	if r, _ := messageNames.Scan(text, jsonx.MaxDepth, m.top[:]); r == jsonx.ScanOK && validID(&m.top[1]) {
		m.id = m.top[1]
	}
	return appendError(nil, &m, errLong)
}

// streamCalls is the transport of one text.
type streamCalls struct {
	s *Stream
	x *responder
}

func (t *streamCalls) call(dst []byte, row *method.Row, args []byte, _ bool) (text []byte, failed bool) {
	ctx, cancel := context.WithCancel(t.x.ctx)
	defer cancel()
	s, id := t.s, string(appendMember(nil, &t.x.m.id))
	s.mu.Lock()
	s.running[id] = cancel
	s.mu.Unlock()
	text, failed = s.run(ctx, row, args)
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	return append(dst, text...), failed
}

// notified implements transport: a client gives up a call.
func (t *streamCalls) notified(m *message) {
	if string(m.method.Raw) != "notifications/cancelled" {
		return
	}
	var id [1]jsonx.Value
	jsonx.Pick(m.params.Raw, []string{"requestId"}, id[:])
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if cancel := t.s.running[string(id[0].Raw)]; cancel != nil {
		cancel()
	}
}

func (t *streamCalls) crowded(dst []byte, _ *method.Row, _ int) (text []byte, is bool) {
	return dst, false
}

func (t *streamCalls) serveSDK(w http.ResponseWriter, r *http.Request) *method.Fault {
	t.s.sdk.ServeHTTP(w, r)
	return nil
}
