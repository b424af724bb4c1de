package exactaclient

import (
	"errors"
	"net"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// maxDepth is the deepest nesting of a message (exacta §3.1).
const maxDepth = 32

// Kind is what a Message is.
type Kind uint8

// The kinds (exacta §3.3 to §3.5).
const (
	Event Kind = iota
	Response
	Ack
)

// Message is one line of the server. Its bytes are valid until the next call on the connection.
type Message struct {
	Kind        Kind
	Raw         []byte // the whole line, without its end
	RequestID   string // in lower case; empty for null
	Correlation string

	// Of an answer.
	OK     bool
	Result Object // nil if not OK
	Err    *Error // nil if OK

	// Of an event. The numbers are 0 where the server gives none (exacta D3).
	Event          string
	Project        string
	Seq, StreamSeq uint64
	Payload        Object
}

// events is the catalogue (exacta §3.4).
const events = " StateChanged PlanProposed DiffProposed StepStarted StepCompleted Progress LogEntry ErrorRaised "

// known reports whether an event is in the catalogue. Others are ignored (exacta §6.5).
func (m *Message) known() bool {
	return m.Kind != Event || m.Event != "" && strings.Contains(events, " "+m.Event+" ")
}

// decoder reads lines. It is scratch memory.
type decoder struct{ strict jsonx.Strict }

// decode reads a line; what it returns points into it. The version is checked before all else, as a
// server of another one may have other messages.
func (d *decoder) decode(line []byte) (m Message, err *Error) {
	if problem := d.strict.Check(line, maxDepth); !problem.OK() {
		return m, local("IPC-001", "invalid_json: "+problem.String())
	}
	if jsonx.ValueOf(line).Kind != jsonx.ObjectStart {
		return m, local("IPC-001", "not_an_object")
	}
	o := Object(line)
	if err := checkVersion(o); err != nil {
		return m, err
	}
	m.Raw = line
	if m.RequestID, err = idOf(o, "request_id"); err != nil {
		return m, err
	}
	m.Correlation = strings.ToLower(o.Text("correlation_id"))
	switch o.Text("type") {
	case "event":
		return m, m.event(o)
	case "ack":
		m.Kind = Ack
	case "response":
		m.Kind = Response
	default:
		return m, local("IPC-001", "invalid:type")
	}
	return m, m.answer(o)
}

// checkVersion refuses a server of another major version.
func checkVersion(o Object) *Error {
	v := o.Get("ipc_version")
	if v.Kind == jsonx.End {
		return local("IPC-001", "missing:ipc_version")
	}
	text := o.Text("ipc_version")
	major, ok := codec.ParseVersion([]byte(text))
	if !ok {
		return local("IPC-001", "invalid:ipc_version")
	}
	if string(major) != "1" {
		err := local("IPC-002", "the server speaks "+text, text)
		err.Message = "IPC version " + text + " is not supported; this client speaks 1.0."
		return err
	}
	return nil
}

// idOf reads an identifier or null, which is empty.
func idOf(o Object, name string) (string, *Error) {
	switch v := o.Get(name); v.Kind {
	case jsonx.End:
		return "", local("IPC-001", "missing:"+name)
	case jsonx.Null:
		return "", nil
	}
	id, ok := codec.ParseID([]byte(o.Text(name)))
	if !ok {
		return "", local("IPC-001", "invalid:"+name)
	}
	return id.String(), nil
}

// answer reads what only answers have: a result if ok is true, else an error, and never both.
func (m *Message) answer(o Object) *Error {
	result, failure := o.Object("result"), o.Object("error")
	for _, name := range [...]string{"result", "error"} {
		if k := o.Get(name).Kind; k != jsonx.Null && k != jsonx.End && k != jsonx.ObjectStart {
			return local("IPC-005", "invalid:"+name)
		}
	}
	m.OK = o.True("ok")
	switch {
	case result == nil && failure == nil:
		return local("IPC-005", "neither result nor error")
	case result != nil && failure != nil:
		return local("IPC-005", "both result and error")
	case m.OK != (result != nil) || !m.OK && o.Get("ok").Kind != jsonx.False:
		return local("IPC-005", "invalid:ok")
	}
	m.Result = result
	if failure != nil {
		m.Err = ErrorOf(failure)
	}
	return nil
}

// ErrorOf reads an error object (exacta §3.7).
func ErrorOf(o Object) *Error {
	return &Error{Code: o.Text("code"), Category: o.Text("category"), Message: o.Text("message"), Detail: o.Text("technical_detail"),
		Recovery: o.Text("recovery_path"), Retryable: o.True("retryable")}
}

// event reads what only events have.
func (m *Message) event(o Object) (err *Error) {
	m.Event = o.Text("event")
	if m.Payload = o.Object("payload"); m.Payload == nil || m.Event == "" {
		return local("IPC-001", "invalid:event")
	}
	if o.Get("project_id").Kind != jsonx.End {
		if m.Project, err = idOf(o, "project_id"); err != nil {
			return err
		}
	}
	if m.Seq, err = count(o, "seq"); err != nil {
		return err
	}
	m.StreamSeq, err = count(o, "stream_seq")
	return err
}

// count reads a number from 1; 0 if there is none.
func count(o Object, name string) (uint64, *Error) {
	v := o.Get(name)
	if v.Kind == jsonx.End {
		return 0, nil
	}
	if n, ok := jsonx.ParseInt(v.Raw); ok && v.Kind == jsonx.Number && n > 0 {
		return uint64(n), nil
	}
	return 0, local("IPC-001", "invalid:"+name)
}

// Error is an error object (exacta §3.7): the server's, or one that this side found.
type Error struct {
	Code, Category   string
	Message, Detail  string
	Recovery         string
	Retryable, Local bool // Local: this side found it
}

// Error returns "CODE: message".
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// local returns an error that this side found.
func local(code, detail string, values ...string) *Error {
	f := errcode.New(code, detail, values...)
	row := f.Row()
	return &Error{Code: code, Category: row.Category, Message: f.Message(), Detail: detail, Recovery: row.Recovery, Retryable: row.Retryable, Local: true}
}

// ConnError means that a connection could not be made or is lost.
type ConnError struct {
	Addr string // as it was dialled
	Err  error  // the reason; io.EOF when the server closed

	dialling bool
}

// Error names the address and the reason.
func (e *ConnError) Error() string {
	if !e.dialling {
		return "connection to " + e.Addr + " lost: " + e.Err.Error()
	}
	why := e.Err
	if op := (*net.OpError)(nil); errors.As(why, &op) && op.Err != nil {
		why = op.Err // its own text has the address again
	}
	return "cannot connect to " + e.Addr + ": " + why.Error()
}

// Unwrap returns the reason.
func (e *ConnError) Unwrap() error { return e.Err }

// Object is the text of an object in a message that was checked. What is missing or of another type
// is read as empty.
type Object []byte

// Get returns the value of a member; its Kind is End where there is none.
func (o Object) Get(name string) jsonx.Value {
	var out [1]jsonx.Value
	jsonx.Pick(o, []string{name}, out[:])
	return out[0]
}

// Text returns a string. It shares no memory with the message.
func (o Object) Text(name string) string {
	text, _ := o.Get(name).Text()
	return string(text)
}

// Int returns an integer.
func (o Object) Int(name string) int64 {
	v := o.Get(name)
	if v.Kind != jsonx.Number {
		return 0
	}
	n, _ := jsonx.ParseInt(v.Raw)
	return n
}

// True reports whether a member is true.
func (o Object) True(name string) bool { return o.Get(name).Kind == jsonx.True }

// Object returns an object.
func (o Object) Object(name string) Object {
	v := o.Get(name)
	if v.Kind != jsonx.ObjectStart {
		return nil
	}
	return v.Raw
}

// Texts returns an array of strings. They share no memory with the message.
func (o Object) Texts(name string) []string {
	var out []string
	it := jsonx.OpenArray(o.Get(name).Raw)
	for v, ok := it.Next(); ok; v, ok = it.Next() {
		if text, ok := v.Text(); ok {
			out = append(out, string(text))
		}
	}
	return out
}

// Objects returns an array of objects.
func (o Object) Objects(name string) []Object {
	var out []Object
	it := jsonx.OpenArray(o.Get(name).Raw)
	for v, ok := it.Next(); ok; v, ok = it.Next() {
		if v.Kind == jsonx.ObjectStart {
			out = append(out, v.Raw)
		}
	}
	return out
}
