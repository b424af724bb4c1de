package lines

import (
	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/method"
)

// Members of a line, in the order of names.
const (
	atID = iota
	atMethod
	atParams
	atRequestID
	numMembers
)

var names = jsonx.NewNames("id", "method", "params", "request_id")

// Bounds of a line (threads §2.4, §3.2).
const (
	maxDepth   = 64 + 1 // params have the depth of a body
	maxIDText  = 64
	maxIDValue = 1<<53 - 1
)

// request is a line that was split. Its slices are parts of the line.
type request struct {
	members [numMembers]jsonx.Member
	id      []byte // its text, without quotes; nil: it has none
}

// parse splits a line. With a fault that is final for the line, it returns that; decoded is false
// where the line is no JSON object, or one without an id that breaks a rule of threads §3.2.
func (r *request) parse(line []byte, strict *jsonx.Strict) (f *method.Fault, decoded bool) {
	r.id = nil
	if p := strict.Scan(names, line, maxDepth, r.members[:]); !p.OK() {
		if string(p.Key(line)) != "id" {
			r.id = validID(&r.members[atID]) // absent after a fault of syntax
		}
		return method.Malformed("line", p, line), r.id != nil
	}
	id, m := &r.members[atID], &r.members[atMethod]
	if r.id = validID(id); r.id == nil {
		return &method.Fault{Condition: method.Invalid, Message: "id is neither an integer from 0 to 2^53-1 nor a string of 1 to 64 bytes"}, true
	}
	if m.Kind != jsonx.String {
		return &method.Fault{Condition: method.Invalid, Message: "method is not a string"}, true
	}
	return nil, true
}

// validID returns the text of an id, without its quotes, nil if it is not valid.
func validID(id *jsonx.Member) []byte {
	switch id.Kind {
	case jsonx.String:
		if n := len(meaning(id)); n < 1 || n > maxIDText {
			return nil
		}
		return id.Raw
	case jsonx.Number:
		if n, ok := jsonx.Integral(id.Raw); ok && n >= 0 && n <= maxIDValue {
			return id.Raw
		}
	}
	return nil
}

// requestID returns the name that the client gave to the request, nil if it is not valid.
func (r *request) requestID() (id []byte, given bool) {
	m := &r.members[atRequestID]
	if m.Kind == jsonx.String {
		if id = meaning(m); !method.ValidRequestID(id) {
			id = nil
		}
	}
	return id, m.Kind != jsonx.Absent
}

// meaning returns the text of a string. One without escapes is a part of the line.
func meaning(m *jsonx.Member) []byte {
	if m.Escaped {
		return jsonx.AppendUnescaped(nil, m.Raw)
	}
	return m.Raw
}

// text returns whether the id is a string, which is echoed with its quotes.
func (r *request) text() bool { return r.members[atID].Kind == jsonx.String }

// params returns the text of params, nil if they are absent.
func (r *request) params() []byte { return r.members[atParams].Raw }

// appendHead appends the beginning of a reply.
func appendHead(dst []byte, r *request, ok string) []byte {
	dst = append(dst, `{"id":`...)
	switch {
	case r == nil || r.id == nil:
		dst = append(dst, "null"...)
	case r.text():
		dst = append(append(append(dst, '"'), r.id...), '"')
	default:
		dst = append(dst, r.id...)
	}
	return append(append(dst, `,"ok":`...), ok...)
}

// appendFault appends the reply to a request that is refused; r may be nil.
func appendFault(dst []byte, r *request, f *method.Fault, requestID []byte) []byte {
	dst = append(appendHead(dst, r, "false"), `,"error":`...)
	return append(method.AppendError(dst, f, method.Spec, requestID), "}\n"...)
}
