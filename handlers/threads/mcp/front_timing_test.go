package mcp

import (
	"io"
	"net/http"
	"testing"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// null is where answers go that are not looked at.
type null struct{ head http.Header }

func (w *null) Header() http.Header         { return w.head }
func (w *null) WriteHeader(int)             {}
func (w *null) Write(p []byte) (int, error) { return len(p), nil }

// body is a body that can be read again.
type body struct {
	text string
	at   int
}

func (b *body) Read(p []byte) (int, error) {
	if b.at == len(b.text) {
		return 0, io.EOF
	}
	n := copy(p, b.text[b.at:])
	b.at += n
	return n, nil
}

func (b *body) Close() error { return nil }

// idle is a dispatcher that does nothing, so that the surface alone is measured.
type idle struct{}

func (idle) Call(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
	return append(dst, `{"message_id":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","seq":27,"thread_status":"active","created_at":"2026-02-17T12:00:00.000Z"}`...), method.Outcome{}
}
func (idle) Await(uint64) error                            { return nil }
func (idle) Refused(*method.Caller, string, *method.Fault) {}

// benchmark measures post_message of a revision, through the front or through the SDK.
func benchmark(b *testing.B, version string, front bool) {
	claims, _ := verify("good")
	h := New(
		Config{
			CallsPerMinute: 1_000_000_000,
			Surface: method.Surface{Rows: method.Rows, Dispatcher: idle{}, IDs: fixedID,
				Verify: func(string) (*token.Claims, error) { return claims, nil }},
		},
	)
	meta := ""
	if version == latest {
		meta = `,"_meta":{` + newMeta + `{},"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"}}`
	}
	in := &body{text: `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"post_message","arguments":{"thread_id":"th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2",` +
		`"schema_version":1,"kind":"chat","body":"hello","idempotency_key":"k-7"}` + meta + `}}`}
	r := request("POST", "http://127.0.0.1/mcp", withVersion(version, "post_message"), "")
	r.ContentLength = int64(len(in.text))
	w := &null{head: http.Header{}}
	b.SetBytes(r.ContentLength)
	b.ReportAllocs()
	for b.Loop() {
		in.at, r.Body = 0, in
		clear(w.head)
		if front {
			h.ServeHTTP(w, r)
		} else {
			h.throughSDK(w, r)
		}
	}
}

// throughSDK is ServeHTTP without the front.
func (h *Handler) throughSDK(w http.ResponseWriter, r *http.Request) {
	x := h.exchanges.Get().(*exchange)
	x.caller.RequestID = h.cfg.IDs(nil)
	w.Header()["X-Request-Id"] = []string{string(x.caller.RequestID)}
	if x.admit(r) != nil || x.screen(r) != nil {
		return
	}
	if e, f := x.readBody(r); e != nil || f != nil {
		return
	}
	x.ctx = r.Context()
	x.out = x.out[:0]
	x.revise()
	x.m.scan(x.in, &x.strict)
	x.reply(w, x.askSDK())
}

func BenchmarkFront(b *testing.B) {
	b.Run(legacy, func(b *testing.B) { benchmark(b, legacy, true) })
	b.Run(latest, func(b *testing.B) { benchmark(b, latest, true) })
}

func BenchmarkSDK(b *testing.B) {
	b.Run(legacy, func(b *testing.B) { benchmark(b, legacy, false) })
	b.Run(latest, func(b *testing.B) { benchmark(b, latest, false) })
}
