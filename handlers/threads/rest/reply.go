package rest

import (
	"io"
	"net/http"
	"strconv"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// Header values. net/http only reads them.
var (
	jsonType    = []string{"application/json; charset=utf-8"}
	metricsType = []string{"text/plain; version=0.0.4; charset=utf-8"}
	textType    = []string{"text/plain; charset=utf-8"}
	noStore     = []string{"no-store"}
	isTrue      = []string{"true"}
)

// refuse answers with the error envelope of f.
func (x *exchange) refuse(f *method.Fault) {
	s, h, codes := x.s, x.w.Header(), f.Condition.Codes()
	status := codes.Status
	if x.caller.Dialect == method.Legacy {
		status = codes.LegacyStatus
	}
	switch status {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = s.challenge.For(x.r.Header["Authorization"])
		if codes.Retryable {
			h["Retry-After"] = method.RetryAfter(f)
		}
		s.cfg.Dispatcher.Refused(&x.caller, x.route.operation, f)
	case http.StatusForbidden:
		s.cfg.Dispatcher.Refused(&x.caller, x.route.operation, f)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h["Retry-After"] = method.RetryAfter(f)
	}
	s.Count(f.Condition)
	x.out = method.AppendEnvelope(x.out[:0], f, x.caller.Dialect, x.id, s.cfg.Now())
	x.reply(status, jsonType, x.out)
}

// shortReply is how long a body may be for net/http to add its length.
const shortReply = 2 << 10

// reply sends status and body, which it does not keep. An error is dropped: the peer is gone. A
// body of the request that nothing has read is read and dropped behind the answer.
func (x *exchange) reply(status int, contentType []string, body []byte) {
	x.status = status
	drain := x.r.ContentLength != 0 && !x.bodyRead && x.mayDrain()
	control := http.NewResponseController(x.w)
	httpd.WriteWithin(x.w, x.s.limits.WriteTimeout)
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h[headRequestID] = contentType, noStore, x.idValue
	if drain || len(body) >= shortReply || x.r.Method == http.MethodHead {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	if drain {
		_ = control.EnableFullDuplex() // net/http itself would wait for the body
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body)
	if drain {
		_ = control.Flush()
		x.drain()
	}
}

// mayDrain reports whether the next request may follow behind the rest of the body; else the
// connection ends. A peer that waits for 100 Continue is not asked to send a body that is dropped.
func (x *exchange) mayDrain() bool {
	if _, closing := x.w.Header()["Connection"]; closing {
		return false
	}
	if x.r.ContentLength > int64(x.s.limits.BodyBytes) || x.r.Header["Expect"] != nil {
		httpd.HangUp(x.w, x.r)
		return false
	}
	return true
}

// drain reads and drops the rest of the body. If the end is out of reach, the connection ends.
func (x *exchange) drain() {
	httpd.ReadWithin(x.w, x.s.limits.BodyTimeout)
	if _, err := io.CopyN(io.Discard, x.r.Body, int64(x.s.limits.BodyBytes)+1); err != io.EOF {
		x.abort = true
		httpd.Linger(x.r)
	}
}
