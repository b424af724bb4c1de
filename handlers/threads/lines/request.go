package lines

import (
	"bytes"

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
	id      []byte      // its text, without quotes; nil: it has none
	quoted  bool        // id is a string, which is echoed with its quotes
	last    *method.Row // what pick found; many lines in a row call the same method
}

// maxPickedID is how many digits an id has at most that pick takes: all are below maxIDValue.
const maxPickedID = 15

// pick reads a line and the input of its method in one pass, if it is written as most clients write
// it (threads §10). It returns nil for any other line, which parse has to read.
func (r *request) pick(line []byte, lookup func([]byte) *method.Row, s *jsonx.Strict, p *method.Picked) *method.Row {
	at := r.pickID(line, after(line, 0, `{"id"`))
	if at = afterComma(line, at, `"method"`); at == 0 || line[at] != '"' {
		return nil
	}
	name, row := line[at+1:], r.last
	if row == nil || len(name) <= len(row.Name) || name[len(row.Name)] != '"' || string(name[:len(row.Name)]) != row.Name {
		n := bytes.IndexByte(name, '"')
		if row = lookup(name[:max(0, n)]); row == nil {
			return nil
		}
		r.last = row
	}
	at += 1 + len(row.Name)
	if at = afterComma(line, at+1, `"params"`); at == 0 {
		return nil
	}
	end, ok := row.Pick(p, s, line, at)
	if !ok || end != len(line)-1 || line[end] != '}' {
		return nil
	}
	r.members[atParams].Raw = line[at:end]
	return row
}

// pickID reads the id at i of a line and returns the offset behind it, 0 if it is not a plain one.
func (r *request) pickID(line []byte, i int) (next int) {
	if i == 0 {
		return 0
	}
	start := i
	if r.quoted = line[i] == '"'; r.quoted {
		for i++; i < len(line) && line[i] > ' ' && line[i] < 0x7f && line[i] != '"' && line[i] != '\\'; i++ {
		}
		r.id, i = line[start+1:i], i+1
		if len(r.id) == 0 || len(r.id) > maxIDText || i > len(line) || line[i-1] != '"' {
			return 0
		}
		return i
	}
	for i < len(line) && line[i]-'0' <= 9 {
		i++
	}
	if r.id = line[start:i]; len(r.id) == 0 || len(r.id) > maxPickedID || len(r.id) > 1 && r.id[0] == '0' {
		return 0
	}
	return i
}

// after returns the offset of the value behind a key at i of a line, 0 if that is not there. One
// space at most is before the value.
func after(line []byte, i int, key string) int {
	end := i + len(key)
	if end+2 >= len(line) || string(line[i:end]) != key || line[end] != ':' {
		return 0
	}
	if end++; line[end] == ' ' {
		end++
	}
	return end
}

// afterComma is after for a key behind a comma at i, and one space at most. There is none at 0.
func afterComma(line []byte, i int, key string) int {
	if i == 0 || i+1 >= len(line) || line[i] != ',' {
		return 0
	}
	if line[i+1] == ' ' {
		i++
	}
	return after(line, i+1, key)
}

// parse splits a line. With a fault that is final for the line, it returns that; decoded is false
// where the line is no JSON object, or one without an id that breaks a rule of threads §3.2.
func (r *request) parse(line []byte, strict *jsonx.Strict) (f *method.Fault, decoded bool) {
	r.id, r.quoted = nil, false
	if p := strict.Scan(names, line, maxDepth, r.members[:]); !p.OK() {
		if string(p.Key(line)) != "id" {
			id := &r.members[atID] // absent after a fault of syntax
			r.id, r.quoted = validID(id), id.Kind == jsonx.String
		}
		return method.Malformed("line", p, line), r.id != nil
	}
	id, m := &r.members[atID], &r.members[atMethod]
	if r.id, r.quoted = validID(id), id.Kind == jsonx.String; r.id == nil {
		return &method.Fault{Condition: method.Invalid, Message: "id is neither an integer from 0 to 2^53-1 nor a string of 1 to 64 bytes"}, true
	}
	if m.Kind != jsonx.String {
		return &method.Fault{Condition: method.Invalid, Message: "method is not a string"}, true
	}
	return nil, true
}

var (
	authNames = jsonx.NewNames("protocol", "token")
	protocol  = "threads/1"
)

// bearer returns the token of an auth line; ok is false where its params are not valid.
func (r *request) bearer() (token string, ok bool) {
	var members [2]jsonx.Member
	if result, _ := authNames.Scan(r.params(), maxDepth, members[:]); result != jsonx.ScanOK || members[0].Kind != jsonx.String ||
		string(members[0].Text()) != protocol || members[1].Kind != jsonx.String {
		return "", false
	}
	return string(members[1].Text()), true
}

// Bearer returns the token of a line that is an auth line, of any other one an empty text.
func Bearer(line []byte) (token string) {
	line = jsonx.TrimBOM(line)
	var r request
	if f, _ := r.parse(line, new(jsonx.Strict)); f == nil && string(r.members[atMethod].Text()) == "auth" {
		token, _ = r.bearer()
	}
	return token
}

// validID returns the text of an id, without its quotes, nil if it is not valid.
func validID(id *jsonx.Member) []byte {
	switch id.Kind {
	case jsonx.String:
		if n := len(id.Text()); n < 1 || n > maxIDText {
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
		if id = m.Text(); !method.ValidRequestID(id) {
			id = nil
		}
	}
	return id, m.Kind != jsonx.Absent && m.Kind != jsonx.Null
}

// params returns the text of params, nil if they are absent or null.
func (r *request) params() []byte {
	if r.members[atParams].Kind == jsonx.Null {
		return nil
	}
	return r.members[atParams].Raw
}

// appendHead appends the beginning of a reply.
func appendHead(dst []byte, r *request, ok string) []byte {
	dst = append(dst, `{"id":`...)
	switch {
	case r == nil || r.id == nil:
		dst = append(dst, "null"...)
	case r.quoted:
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
