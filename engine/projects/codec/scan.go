package codec

import (
	"bytes"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

// maxDepth is how deep a message may nest (exacta §3.1).
const maxDepth = 32

// maxTimeout bounds timeout_ms, in milliseconds (exacta §3.2).
const maxTimeout = 3_600_000

// The members of an envelope that Scan picks.
const (
	atVersion = iota
	atType
	atRequestID
	atSentAt
	atCommand
	atPayload
	atTimeout
)

var envelopeNames = jsonx.NewNames("ipc_version", "type", "request_id", "sent_at", "command", "payload", "timeout_ms")

// flatNames are read inside of the payload too (exacta §2.3, §3.2).
var flatNames = []string{"ipc_version", "request_id", "sent_at", "timeout_ms"}

const flatTimeout = 3

// Message is one message of a client. Its bytes are those of the line or of the Scanner.
type Message struct {
	Type      Type
	Command   Command
	RequestID []byte // as it was given; nil: it cannot be read
	Key       ID     // the same in lower case, for comparisons
	Payload   []byte // an object; of a Subscribe and an Ack the whole line
	Timeout   int64  // in milliseconds; 0: none was given

	// Usual is set if the payload is written as most programs write it, and has no members but
	// timeout_ms and those of Fields.
	Usual  bool
	Fields [fields][]byte // in the order of their names, if Usual is set; nil where there is none
}

// The members of Fields: identifiers, or any text of printable ASCII characters.
const (
	ExecutionID = iota
	IntentID
	PlanID
	ProjectID
	fields
)

// payloadNames are the names of Fields and timeout_ms, in the order in which clients write them.
var (
	payloadNames  = jsonx.NewNames("project_id", "execution_id", "plan_id", "intent_id", "timeout_ms")
	payloadFields = [fields + 1]int{ProjectID, ExecutionID, PlanID, IntentID, fields}
)

// FieldNames are the names of Fields.
var FieldNames = [fields]string{"execution_id", "intent_id", "plan_id", "project_id"}

// Field returns a member of Fields, nil for any other name.
func (m *Message) Field(name string) []byte {
	for i, f := range FieldNames {
		if f == name {
			return m.Fields[i]
		}
	}
	return nil
}

// Refusal is why a message is no request that can be served (exacta §3.6). Code is empty if
// nothing is wrong.
type Refusal struct {
	Code   string
	Value  []byte // in the message
	Detail string
	Field  string // behind Detail

	problem jsonx.Problem
}

// Scanner scans messages. It is scratch memory for one goroutine; the zero Scanner is ready.
type Scanner struct {
	strict  jsonx.Strict
	members [7]jsonx.Member
	fields  [fields + 1]jsonx.Member // of the payload, by payloadNames
	inside  jsonx.Inside
	flat    [4]jsonx.Value
	text    [2][]byte // the meanings of escaped strings
}

// Scan reads one line and makes the checks 2 to 12 of exacta §3.6. With a refusal m has the
// request_id, if it can be read. It does not allocate once it is warm, but for strings with
// escapes and for messages with unusual keys or numbers.
func (s *Scanner) Scan(line []byte, m *Message) Refusal {
	*m = Message{}
	line = jsonx.TrimBOM(line)
	if s.inside.Names == nil {
		s.inside = jsonx.Inside{At: atPayload, Names: payloadNames, Out: s.fields[:]}
		s.strict.Loose = true // exacta §3.1 allows such keys and numbers
	}
	if end, ok := s.strict.PickInside(envelopeNames, line, 0, maxDepth, s.members[:], &s.inside); !ok || end != len(line) {
		s.inside.OK = false
		if r := s.unusual(line); r.Code != "" {
			return r
		}
	}
	if !s.usual(m) {
		s.flatten()
	}
	s.requestID(m)
	if s.is(atType, "ack") {
		m.Type, m.Payload, m.Usual = Ack, line, false
		return Refusal{}
	}
	if r := s.header(m); r.Code != "" {
		return r
	}
	if m.Type != Request {
		m.Payload, m.Usual = line, false
		return Refusal{}
	}
	return s.request(m)
}

// unusual scans a line that is not written as most programs write it, or is no message.
func (s *Scanner) unusual(line []byte) Refusal {
	if !utf8.Valid(line) {
		return Refusal{Code: "IPC-001", Detail: "invalid_utf8"}
	}
	switch p := s.strict.Scan(envelopeNames, line, maxDepth, s.members[:]); {
	case p.OK():
		return Refusal{}
	case p.Kind == jsonx.NotObject:
		return Refusal{Code: "IPC-001", Detail: "not_an_object"}
	default:
		return Refusal{Code: "IPC-001", Detail: "invalid_json: ", problem: p}
	}
}

// usual reads the fields of a payload that has no others.
func (s *Scanner) usual(m *Message) bool {
	if !s.inside.OK {
		return false
	}
	clear(s.flat[:])
	for i := range s.fields {
		f := &s.fields[i]
		switch at := payloadFields[i]; {
		case f.Kind == jsonx.Absent:
		case at == fields:
			s.flat[flatTimeout] = jsonx.Value{Kind: f.Kind, Raw: f.Raw}
		case f.Kind == jsonx.String && f.Plain:
			m.Fields[at] = f.Raw
		default:
			return false
		}
	}
	m.Usual = true
	return true
}

// flatten takes members that are absent from the payload (exacta §2.3).
func (s *Scanner) flatten() {
	clear(s.flat[:])
	payload := &s.members[atPayload]
	if payload.Kind != jsonx.ObjectStart {
		return
	}
	jsonx.Pick(payload.Raw, flatNames, s.flat[:])
	for i, at := range [...]int{atVersion, atRequestID, atSentAt} {
		v := &s.flat[i]
		if s.members[at].Kind != jsonx.Absent || v.Kind == jsonx.End {
			continue
		}
		m := jsonx.Member{Kind: v.Kind, Raw: v.Raw}
		if v.Kind == jsonx.String {
			m.Raw = v.Raw[1 : len(v.Raw)-1]
			m.Escaped = bytes.IndexByte(m.Raw, '\\') >= 0
		}
		s.members[at] = m
	}
}

// meaning returns the meaning of a string, nil for any other value.
func (s *Scanner) meaning(at int) []byte {
	m := &s.members[at]
	if m.Kind != jsonx.String {
		return nil
	}
	if !m.Escaped {
		return m.Raw
	}
	i := 0
	if at == atRequestID {
		i = 1 // it is used beside the others
	}
	s.text[i] = jsonx.AppendUnescaped(s.text[i][:0], m.Raw)
	return s.text[i]
}

func (s *Scanner) is(at int, text string) bool { return string(s.meaning(at)) == text }

// requestID reads the request_id, for the echo.
func (s *Scanner) requestID(m *Message) {
	text := s.meaning(atRequestID)
	if id, ok := ParseID(text); ok && id != (ID{}) {
		m.RequestID, m.Key = text, id
	}
}

// wrong refuses an envelope because of a member.
func (s *Scanner) wrong(at int) Refusal {
	r := Refusal{Code: "IPC-001", Detail: "invalid:", Field: envelopeNames.Name(at)}
	if s.members[at].Kind == jsonx.Absent {
		r.Detail = "missing:"
	}
	return r
}

// header makes the checks 5 to 9.
func (s *Scanner) header(m *Message) Refusal {
	version := s.meaning(atVersion)
	major, ok := ParseVersion(version)
	if !ok {
		return s.wrong(atVersion)
	}
	if string(major) != "1" {
		return Refusal{Code: "IPC-002", Value: version}
	}
	switch {
	case s.is(atType, "request"):
	case s.is(atType, "subscribe"):
		m.Type = Subscribe
	default:
		return s.wrong(atType)
	}
	if m.RequestID == nil {
		return s.wrong(atRequestID)
	}
	if !isTime(s.meaning(atSentAt)) {
		return s.wrong(atSentAt)
	}
	return Refusal{}
}

// request makes the checks 10 to 12.
func (s *Scanner) request(m *Message) Refusal {
	if s.members[atCommand].Kind != jsonx.String {
		return s.wrong(atCommand)
	}
	name := s.meaning(atCommand)
	if m.Command = commandOf(name); m.Command == NoCommand {
		return Refusal{Code: "IPC-003", Value: clip(name, shownCommand)}
	}
	payload := &s.members[atPayload]
	if payload.Kind != jsonx.ObjectStart {
		return s.wrong(atPayload)
	}
	m.Payload = payload.Raw
	outer, inner := &s.members[atTimeout], &s.flat[flatTimeout]
	if !timeout(outer.Kind, outer.Raw, &m.Timeout) || !timeout(inner.Kind, inner.Raw, &m.Timeout) {
		return Refusal{Code: "IPC-009", Value: timeoutField, Detail: "timeout_ms: an integer from 1 to 3600000 is expected"}
	}
	return Refusal{}
}

// shownCommand is how many characters of an unknown command are shown (exacta §3.7).
const shownCommand = 64

var timeoutField = []byte("timeout_ms")

// timeout reads a timeout_ms into least, where it is less.
func timeout(kind jsonx.TokenKind, raw []byte, least *int64) bool {
	if kind == jsonx.Absent {
		return true
	}
	if kind != jsonx.Number {
		return false
	}
	n, ok := jsonx.ParseInt(raw)
	if !ok || n < 1 || n > maxTimeout {
		return false
	}
	if *least == 0 || n < *least {
		*least = n
	}
	return true
}

// clip returns the first characters of text.
func clip(text []byte, most int) []byte {
	i := 0
	for ; most > 0 && i < len(text); most-- {
		_, n := utf8.DecodeRune(text[i:])
		i += n
	}
	return text[:i]
}
