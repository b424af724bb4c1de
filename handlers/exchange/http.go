package exchange

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"trunkline/engine/connection"
	"trunkline/engine/envelope"
	"trunkline/handlers/internal/httpd"
)

// path is the only one there is (envelope §2.3).
const path = "/api/v1/process"

// contentType is the header value of every reply; net/http only reads it.
var contentType = []string{"application/json"}

// exchange is one request and its reply.
type exchange struct {
	s       *Server
	w       http.ResponseWriter
	r       *http.Request
	replied bool
	row     int // of the meter
	failed  int64
}

// serveHTTP answers one request: it refuses what the head rules out, then, within MaxInFlight, runs
// the body.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchange{s: s, w: w, r: r}
	peer, began := httpd.Peer(r.Context())
	defer func() { s.meter.Record(x.row, connection.Mono()-began, 1, x.failed, peer) }()
	defer x.recoverPanic()
	if r.URL.Path != path {
		x.row = rowInvalid
	}
	if no := s.screen(r); no != nil {
		x.refuse(no)
		return
	}
	if !s.enter() {
		x.refuse(s.bounds.Load().overloaded)
		return
	}
	defer s.inFlight.Add(-1)
	x.serve()
}

// screen returns what speaks against a request before its body is read; nil if nothing does.
func (s *Server) screen(r *http.Request) *refusal {
	switch {
	case r.ProtoMajor != 1:
		return &s.refusals.version
	case httpd.Ambiguous(r):
		return &s.refusals.ambiguous
	case s.Draining.Load():
		return &s.refusals.stopping
	case httpd.HeaderBytes(r) > s.cfg.MaxHeaderBytes:
		return &s.refusals.headers
	case r.URL.Path != path || r.URL.RawPath != "":
		return &s.refusals.notFound
	case r.Method != http.MethodPost:
		return &s.refusals.method
	case !isJSON(r.Header):
		return &s.refusals.mediaType
	case !isPlain(r.Header):
		return &s.refusals.encoding
	case r.ContentLength > int64(s.cfg.MaxBodyBytes):
		return &s.refusals.tooLarge
	}
	return nil
}

// serve reads the body, runs the engine and replies.
func (x *exchange) serve() {
	s := x.s
	b := s.buffers.Get().(*buffers)
	httpd.ReadWithin(x.w, s.cfg.ReadBodyTimeout)
	var err error
	if b.in, err = readAll(x.r.Body, b.in, s.cfg.MaxBodyBytes, x.r.ContentLength); err != nil {
		s.give(b)
		x.refuse(s.readProblem(err))
		return
	}
	out, _, no := s.process(b.out[:0], b.in)
	status := http.StatusOK
	if no != nil {
		out, status = no.Append(b.out[:0]), statusOf(no.Code)
	}
	b.out = out
	x.reply(status, out)
	s.give(b)
}

// readProblem names the answer to a body that did not come to its end.
func (s *Server) readProblem(err error) *refusal {
	switch {
	case err == errTooLarge:
		return &s.refusals.tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &s.refusals.timeout
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &s.refusals.short
	}
	return &s.refusals.badBody
}

// statusOf is the HTTP status of an error of the engine (envelope §2.3).
func statusOf(code envelope.ErrorCode) int {
	switch code {
	case envelope.ParseError:
		return http.StatusBadRequest
	case envelope.InvalidEnvelope:
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

// refuse answers without the engine. The connection goes on unless the refusal ends it or the
// body's end is out of reach.
func (x *exchange) refuse(no *refusal) {
	if no.hangUp || !x.discard() {
		httpd.HangUp(x.w, x.r)
	}
	if no.header != "" {
		x.w.Header().Set(no.header, no.value)
	}
	x.reply(no.status, no.append(nil))
}

// discard reads and drops the rest of the body, so that the next request can follow, and reports
// whether it reached the end. A peer that waits for 100 Continue is not asked to send a body that
// is dropped; its connection ends.
func (x *exchange) discard() bool {
	r := x.r
	if r.ContentLength == 0 {
		return true
	}
	if r.ContentLength > int64(x.s.cfg.MaxBodyBytes) || r.Header["Expect"] != nil {
		return false
	}
	httpd.ReadWithin(x.w, x.s.cfg.ReadBodyTimeout)
	_, err := io.CopyN(io.Discard, r.Body, int64(x.s.cfg.MaxBodyBytes)+1)
	return err == io.EOF
}

// reply sends status and body, which it does not keep. An error is dropped: the peer is gone.
func (x *exchange) reply(status int, body []byte) {
	x.replied = true
	httpd.WriteWithin(x.w, x.s.cfg.WriteTimeout)
	h := x.w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.s.count(status)
	if status >= http.StatusBadRequest {
		x.failed = 1
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body)
}

// recoverPanic answers a panic, so that the engine does not end the server. The buffers are
// dropped.
func (x *exchange) recoverPanic() {
	p := recover()
	if p == nil {
		return
	}
	x.s.cfg.Logger.Error("cannot answer an HTTP request: panic", "panic", p, "stack", string(debug.Stack()))
	if !x.replied {
		x.refuse(&x.s.refusals.internal)
	}
}

// isJSON reports whether the body is declared as JSON in UTF-8, or not declared (envelope §2.3).
func isJSON(h http.Header) bool {
	given := h["Content-Type"]
	switch {
	case len(given) == 0:
		return true
	case len(given) > 1:
		return false
	case given[0] == contentType[0]:
		return true
	}
	media, ok := httpd.TextType(given[0])
	sub, is := strings.CutPrefix(media, "application/")
	return ok && is && (sub == "json" || len(sub) > len("+json") && strings.HasSuffix(sub, "+json"))
}

// isPlain reports whether the body is not compressed or otherwise encoded.
func isPlain(h http.Header) bool {
	for _, codings := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(codings, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return false
			}
		}
	}
	return true
}
