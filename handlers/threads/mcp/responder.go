package mcp

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"trunkline/codec/jsonx"
	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// Bounds of a batch.
const (
	// maxBatch is how many messages a batch has at most.
	maxBatch = 1000
	// maxAnswer bounds the answer to a batch. The first answer that does not fit is replaced by an
	// error, and what follows is not run; neither is a message where the largest answer of a method
	// that changes something, maxChange, would not fit.
	maxAnswer = 8 << 20
	maxChange = 128 << 10
	// refusalBytes is what such an error has at most, beside the id.
	refusalBytes = 256
)

// The errors of batches.
var (
	errNoBatch = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
		"revisions from 2025-06-18 on have no batches"}
	errBatch      = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a batch has 1 to 1000 messages"}
	errLongAnswer = &rpcError{http.StatusOK, jsonrpc.CodeInvalidRequest,
		"the answers to this batch are too long together: send fewer messages at a time, or read less"}
)

// transport is the way that messages come by.
type transport interface {
	// call runs a method. It appends the result to dst, or the error envelope, and then failed is
	// set. checked is as method.Caller.Checked.
	call(dst []byte, row *method.Row, args []byte, checked bool) (text []byte, failed bool)
	// crowded reports that an answer of so many bytes does not fit into memory, and then appends
	// the error envelope for that.
	crowded(dst []byte, row *method.Row, bytes int) (text []byte, is bool)
	// serveSDK lets the SDK answer a request. With a fault it does not.
	serveSDK(w http.ResponseWriter, r *http.Request) *method.Fault
	// notified gets each notification.
	notified(m *message)
}

// transportKey is where the context of a request to the SDK has the transport.
type transportKey struct{}

// responder answers the messages of a client. It is for one goroutine.
type responder struct {
	to   transport
	ctx  context.Context
	rows []method.Row
	// version, verb and tool are fields of the header of the request. On a stream there is none,
	// and each message names its revision.
	version, verb, tool []string
	stream              bool
	newer, known        bool // the newest revision, one of those that are served
	fault               *method.Fault

	m      message
	strict jsonx.Strict
	failed bool // the last message was not served
	text   []byte
	out    []byte // the answers
}

// revise takes the revision of what follows.
func (x *responder) revise() {
	x.newer = len(x.version) == 1 && x.version[0] == newEra
	x.known = x.newer || len(x.version) == 0 || isOldEra(x.version[0])
}

// respond answers a text, which is a message or a batch, in x.out and returns the status of HTTP.
// x.fault is set where the SDK has no place for it.
func (x *responder) respond(text []byte) (status int) {
	x.out = x.out[:0]
	x.revise()
	if text = jsonx.TrimBOM(text); !isBatch(text) {
		return x.message(text)
	}
	x.m = message{}
	switch {
	case !x.stream && (!x.known || len(x.version) > 0 && x.version[0] > lastBatches):
		return x.refuseMessage(errNoBatch)
	case !jsonx.Check(text, jsonx.MaxDepth).OK():
		return x.refuseMessage(errParse)
	}
	return x.batch(text)
}

// lastBatches is the last revision with batches.
const lastBatches = "2025-03-26"

// isBatch reports whether a text begins as an array does.
func isBatch(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '['
}

// batch answers the messages of a batch one after the other.
func (x *responder) batch(text []byte) (status int) {
	n := 0
	for list := jsonx.OpenArray(text); n <= maxBatch; n++ {
		if _, ok := list.Next(); !ok {
			break
		}
	}
	if n == 0 || n > maxBatch {
		return x.refuseMessage(errBatch)
	}
	reserved := n*refusalBytes + len(text) // for errors in place of all that follows
	full := false
	x.out = append(x.out, '[')
	for list := jsonx.OpenArray(text); x.ctx.Err() == nil; {
		v, ok := list.Next()
		if !ok {
			break
		}
		if reserved -= refusalBytes + len(v.Raw); len(x.out) > 1 {
			x.out = append(x.out, ',')
		}
		start := len(x.out)
		left := maxAnswer - reserved - start
		if full = full || left < maxChange; full {
			if x.m.scan(v.Raw, &x.strict); x.m.id.Kind != jsonx.Absent {
				x.refuseMessage(errLongAnswer)
			}
		} else if x.message(v.Raw); len(x.out)-start > left {
			x.out, full = x.out[:start], true
			x.refuseMessage(errLongAnswer)
		}
		if x.fault != nil {
			x.refuseMessage(&rpcError{http.StatusOK, jsonrpc.CodeInternalError, x.fault.Message})
			x.fault = nil
		}
		if len(x.out) == start && start > 1 { // no answer, and no comma
			x.out = x.out[:start-1]
		}
	}
	if len(x.out) == 1 {
		x.out = x.out[:0]
		return http.StatusAccepted
	}
	x.out = append(x.out, ']')
	return http.StatusOK
}

// message appends the answer to a message, nothing for a notification.
func (x *responder) message(text []byte) (status int) {
	x.failed = false
	if e := x.m.scan(text, &x.strict); e != nil {
		return x.refuseMessage(e)
	}
	if x.stream {
		x.sayRevision()
	}
	switch {
	case x.m.id.Kind == jsonx.Absent:
		x.to.notified(&x.m)
		return http.StatusAccepted
	case x.known && !offered(x.m.method.Raw):
		if x.newer {
			return x.refuseMessage(errNoMethodPage)
		}
		return x.refuseMessage(errNoMethod)
	case x.known && x.m.ordinary(x.newer):
		if row := rowOf(x.rows, x.m.tool); row != nil && (!x.newer || x.stream || x.named()) {
			x.callTool(row)
			return http.StatusOK
		}
	}
	return x.askSDK()
}

// refuseMessage appends an error as the answer.
func (x *responder) refuseMessage(e *rpcError) (status int) {
	x.failed = true
	x.out = appendError(x.out, &x.m, e)
	return e.status
}

// sayRevision makes what a header has of a message on a stream.
func (x *responder) sayRevision() {
	x.version = nil
	if v := &x.m.version; v.Kind == jsonx.String {
		x.version = []string{string(jsonx.Unescape(v.Raw))}
		x.verb = []string{string(jsonx.Unescape(x.m.method.Raw))}
		x.tool = []string{string(jsonx.Unescape(x.m.inner[0].Raw))}
	}
	x.revise()
}

// rowOf returns the row of a tool, nil if there is none.
func rowOf(rows []method.Row, name []byte) *method.Row {
	for i := range rows {
		if rows[i].Name == string(name) {
			return &rows[i]
		}
	}
	return nil
}

// named reports whether the header names the call of the tool, as the newest revision wants.
func (x *responder) named() bool {
	return len(x.verb) == 1 && x.verb[0] == "tools/call" && len(x.tool) == 1 && x.tool[0] == string(x.m.tool)
}

// callTool appends the answer to an ordinary call of a tool. It is that of the SDK, byte by byte.
func (x *responder) callTool(row *method.Row) {
	start := len(x.out)
	var failed bool
	x.text, failed = x.to.call(x.text[:0], row, x.m.args, x.m.checked)
	x.out = appendResult(x.out, &x.m, x.newer, x.text, failed)
	if len(x.out) > httpd.Trusted {
		if text, is := x.to.crowded(x.text[:0], row, len(x.text)+len(x.out)); is { // of a method that reads
			x.text = text
			x.out = appendResult(x.out[:start], &x.m, x.newer, x.text, true)
		}
	}
}

// sdkID is the id of messages to the SDK, which reads numbers as floating point.
const sdkID = `{"jsonrpc":"2.0","id":1,`

// askSDK appends the answer of the SDK to the message.
func (x *responder) askSDK() (status int) {
	in := appendMember(append([]byte(sdkID), `"method":`...), &x.m.method)
	if x.m.params.Kind != jsonx.Absent {
		in = append(append(in, `,"params":`...), x.m.params.Raw...)
	}
	r, err := http.NewRequestWithContext(context.WithValue(x.ctx, transportKey{}, x.to), http.MethodPost, "/",
		bytes.NewReader(append(in, '}')))
	if err != nil {
		return x.refuseMessage(&rpcError{http.StatusInternalServerError, jsonrpc.CodeInternalError,
			"the message could not be served"})
	}
	r.Header = http.Header{"Content-Type": jsonType, "Accept": bothTypes, "Mcp-Protocol-Version": x.version,
		"Mcp-Method": x.verb, "Mcp-Name": x.tool}
	w := &recorder{head: http.Header{}, status: http.StatusOK}
	if x.fault = x.to.serveSDK(w, r); x.fault != nil {
		return 0
	}
	answer, ok := bytes.CutPrefix(w.body.Bytes(), []byte(sdkID))
	switch failed := bytes.HasPrefix(answer, []byte(`"error":`)); {
	case x.ctx.Err() != nil:
		return w.status
	case !ok: // a text for people
		text, _ := io.ReadAll(io.LimitReader(&w.body, maxError))
		return x.refuseMessage(&rpcError{w.status, jsonrpc.CodeInvalidRequest, publicError(strings.TrimSpace(string(text)))})
	case failed:
		if e := sdkError(w.body.Bytes()); e != nil {
			e.status = w.status
			return x.refuseMessage(e)
		}
		x.failed = true
	}
	x.out = append(appendStart(x.out, &x.m), answer...)
	return w.status
}

// maxError is how many bytes of an error of the SDK are shown.
const maxError = 300

// sdkError returns an error of the SDK in other words where its own are about Go; nil where they
// are not.
func sdkError(answer []byte) *rpcError {
	var e [1]jsonx.Value
	jsonx.Pick(answer, []string{"error"}, e[:])
	var v [2]jsonx.Value
	jsonx.Pick(e[0].Raw, []string{"code", "message"}, v[:])
	code, _ := jsonx.ParseInt(v[0].Raw)
	text := string(jsonx.Unescape(bytes.Trim(v[1].Raw, `"`)))
	if publicError(text) == text && code != 0 {
		return nil
	}
	code = cmp.Or(code, jsonrpc.CodeInternalError)
	return &rpcError{code: int(code), message: publicError(text)}
}

// publicError returns a text of the SDK, unless it has types of Go.
func publicError(text string) string {
	if strings.Contains(text, "json") || strings.Contains(text, "Go ") || text == "" {
		return "the message does not have the form that its method asks for"
	}
	return text
}

// recorder keeps an answer of the SDK.
type recorder struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.head }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// serverMeta is _meta of every result of the newest revision.
const serverMeta = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"` + serverName + `","version":"` + serverVersion + `"}},`

// appendResult appends the answer to a tools/call as the SDK writes it. text is the result of the
// method, or its error envelope where failed is set: JSON without spaces.
func appendResult(dst []byte, m *message, newer bool, text []byte, failed bool) []byte {
	dst = append(appendStart(dst, m), `"result":{`...)
	if newer {
		dst = append(dst, serverMeta...)
	}
	dst = appendEscaped(append(dst, `"content":[{"type":"text","text":"`...), text, &quoted)
	if failed {
		dst = append(dst, `"}],"isError":true`...)
	} else {
		dst = appendEscaped(append(dst, `"}],"structuredContent":`...), text, &copied)
	}
	if newer {
		dst = append(dst, `,"resultType":"complete"`...)
	}
	return append(dst, `}}`...)
}

// appendError appends a JSON-RPC error as the answer to a message, to none if its id is not known.
func appendError(dst []byte, m *message, e *rpcError) []byte {
	dst = strconv.AppendInt(append(appendStart(dst, m), `"error":{"code":`...), int64(e.code), 10)
	return append(jsonx.AppendString(append(dst, `,"message":`...), e.message), `}}`...)
}

// appendStart appends the begin of an answer, with the id as the client wrote it.
func appendStart(dst []byte, m *message) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if m.id.Kind == jsonx.Absent {
		return append(dst, `null,`...)
	}
	return append(appendMember(dst, &m.id), ',')
}

// escapes are the bytes of a JSON text that are not written as they are.
type escapes [256]string

// The SDK writes results for pages, too: characters with a meaning in HTML are escaped. A text
// within a string has its quotes and backslashes escaped besides. JSON without spaces has no
// control characters.
var (
	copied = escapes{'<': `\u003c`, '>': `\u003e`, '&': `\u0026`, lead: `\u202`}
	quoted = escapes{'<': `\u003c`, '>': `\u003e`, '&': `\u0026`, lead: `\u202`, '"': `\"`, '\\': `\\`}
)

// lead and second are how U+2028 begins, and U+2029. Scripts take these for ends of lines.
const lead, second = 0xe2, 0x80

// appendEscaped appends text with what e has in place of its bytes.
func appendEscaped(dst, text []byte, e *escapes) []byte {
	from := 0
	for i := 0; i < len(text); i++ {
		with := e[text[i]]
		if with == "" {
			continue
		}
		if text[i] != lead {
			dst = append(append(dst, text[from:i]...), with...)
			from = i + 1
			continue
		}
		if i+2 < len(text) && text[i+1] == second && text[i+2]&^1 == 0xa8 {
			dst = append(append(append(dst, text[from:i]...), with...), '8'+text[i+2]&1)
			i += 2
			from = i + 1
		}
	}
	return append(dst, text[from:]...)
}
