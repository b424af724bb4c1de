package toolhost

import (
	"bytes"
	"crypto/sha256"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/sessionstate"
)

// Limits of a request (toolhost §6).
const (
	// MaxLine is the longest request line, without its end, and the most that stdin may hold.
	MaxLine  = 10 << 20
	maxReply = 1 << 20
	maxDepth = 32
	maxAID   = 256
	maxKey   = 256
	maxReqID = 128
)

// The members of a tool request, in the order in which the scan numbers them.
const (
	nameAID = iota
	nameRequestID
	nameInputJSON
	nameInputs
	nameDSState
	nameKey
	nameLease
	nameRunID
	numNames
)

var names = jsonx.NewNames("aid", "request_id", "input_json", "inputs", "ds_state", "idempotency_key", "_lease_token", "run_id")

// request is the members of a line: views of it and of scratch memory. The zero request is ready.
type request struct {
	members  [numNames]jsonx.Member
	aid      []byte
	input    []byte // the effective input
	key      []byte
	token    []byte
	runID    []byte
	hasState bool               // the request gave a ds_state
	next     sessionstate.State // then: the session's state with it applied

	name  []byte           // of the key: what is hashed to it
	text  []byte           // an error text in the making
	texts [numNames][]byte // of members with escapes
}

// keepScratch is how much of a large request's scratch memory is kept for the next one.
const keepScratch = 64 << 10

// release lets go of the line, and of scratch memory that a large one made large.
func (r *request) release() {
	r.members = [numNames]jsonx.Member{}
	r.aid, r.key, r.token, r.runID = nil, nil, nil, nil
	r.hasState, r.next = false, sessionstate.State{}
	if cap(r.input) > keepScratch {
		r.input = nil
	}
	if cap(r.text) > keepScratch {
		r.text = nil
	}
	for i := range r.texts {
		if cap(r.texts[i]) > keepScratch {
			r.texts[i] = nil
		}
	}
}

// The fixed texts of protocol errors (toolhost §3.3).
const (
	errInvalidJSON = "invalid JSON"
	errMissingAID  = "missing aid"
	errLongLine    = "line exceeds 10MB limit"
	errNoRun       = "no open run"
	errNoAuth      = "auth_required"
	errOverloaded  = "overloaded"
)

// scan is steps 1 and 2 of toolhost §4.3; fault is the error or "". known is a tool that the line
// may name, or nil. It does not allocate.
func (r *request) scan(line []byte, known *Entry) (fault string) {
	result, which := jsonx.ScanInvalid, -1
	if known != nil && known.follows(line) {
		n := len(known.head)
		aid := line[len(headBegin) : n-len(headEnd)]
		result, which = names.ScanBehind(line, n, nameAID, aid, maxDepth, r.members[:])
	} else {
		result, which = names.Scan(line, maxDepth, r.members[:])
	}
	switch result {
	case jsonx.ScanOK:
		return ""
	case jsonx.ScanDuplicate:
		return duplicateTexts[which]
	case jsonx.ScanNotObject:
		return errMissingAID
	}
	return errInvalidJSON
}

// duplicateTexts and notStringTexts are the errors about members, by number.
var duplicateTexts, notStringTexts = func() (duplicate, notString [numNames]string) {
	for i := range duplicate {
		duplicate[i] = "duplicate key: " + names.Name(i)
		notString[i] = "invalid field: " + names.Name(i) + ": must be a string"
	}
	return duplicate, notString
}()

func (r *request) unescaped(name int) []byte {
	m := &r.members[name]
	if !m.Escaped {
		return m.Raw
	}
	r.texts[name] = jsonx.AppendUnescaped(r.texts[name][:0], m.Raw)
	return r.texts[name]
}

func (r *request) readAID() bool {
	m := &r.members[nameAID]
	if m.Kind != jsonx.String || len(m.Raw) == 0 {
		return false
	}
	r.aid = r.unescaped(nameAID)
	return true
}

const (
	errRequestID = "invalid field: request_id: must be a string or integer"
	errNoObject  = "invalid field: input_json: not a JSON object"
)

// requestID returns what the reply repeats; ok is false for one that is not valid.
func (r *request) requestID() (id requestID, ok bool) {
	if m := &r.members[nameRequestID]; m.Kind != jsonx.Absent {
		return idOf(m)
	}
	return requestID{}, true
}

func idOf(m *jsonx.Member) (id requestID, ok bool) {
	switch m.Kind {
	case jsonx.String:
		if len(m.Raw) > maxReqID { // the length counts what the text means
			var room [6 * maxReqID]byte
			if !m.Escaped || len(m.Raw) > len(room) || len(jsonx.AppendUnescaped(room[:0], m.Raw)) > maxReqID {
				return requestID{}, false
			}
		}
		return requestID{raw: m.Raw, quoted: true}, true
	case jsonx.Number:
		if _, ok := jsonx.ParseInt(m.Raw); ok {
			return requestID{raw: m.Raw}, true
		}
	}
	return requestID{}, false
}

// read is step 6: the field checks in their order, which change r only. fault is the error or "".
func (r *request) read(state *sessionstate.State) (fault string) {
	if r.hasOnlyAID() {
		r.input, r.hasState, r.key, r.token, r.runID = append(r.input[:0], emptyObject...), false, nil, nil, nil
		return ""
	}
	if _, ok := r.requestID(); !ok {
		return errRequestID
	}
	if fault := r.readInput(); fault != "" {
		return fault
	}
	if fault := r.readState(state); fault != "" {
		return fault
	}
	if r.key, fault = r.readText(nameKey); fault != "" {
		return fault
	}
	if len(r.key) > maxKey {
		return "invalid field: idempotency_key: too long"
	}
	if r.token, fault = r.readText(nameLease); fault != "" {
		return fault
	}
	r.runID, fault = r.readText(nameRunID)
	return fault
}

func (r *request) hasOnlyAID() bool {
	m := &r.members
	return m[nameRequestID].Kind|m[nameInputJSON].Kind|m[nameInputs].Kind|m[nameDSState].Kind|m[nameKey].Kind|m[nameLease].Kind|
		m[nameRunID].Kind == jsonx.Absent
}

// readText returns a string member, nil for null and for none.
func (r *request) readText(name int) (text []byte, fault string) {
	switch r.members[name].Kind {
	case jsonx.Absent, jsonx.Null:
		return nil, ""
	case jsonx.String:
		return r.unescaped(name), ""
	}
	return nil, notStringTexts[name]
}

// readInput copies the effective input (toolhost §3.1) to r.input, for a call to take along.
func (r *request) readInput() (fault string) {
	r.input = r.input[:0]
	given := false
	switch m := &r.members[nameInputJSON]; m.Kind {
	case jsonx.Absent, jsonx.Null:
	case jsonx.String:
		given = true
		r.input = jsonx.TrimBOM(jsonx.AppendUnescaped(r.input, m.Raw))
		if fault := r.checkInput(); fault != "" {
			return fault
		}
	default:
		return notStringTexts[nameInputJSON]
	}
	switch m := &r.members[nameInputs]; m.Kind {
	case jsonx.Absent, jsonx.Null:
	case jsonx.ObjectStart:
		if !given {
			r.input = append(r.input, m.Raw...)
		}
	default:
		return "invalid field: inputs: must be an object"
	}
	if len(r.input) == 0 {
		r.input = append(r.input, emptyObject...)
	}
	return ""
}

func (r *request) checkInput() (fault string) {
	if len(r.input) == 0 || r.input[0] != '{' { // nearly no text has space before the object
		text := bytes.TrimLeft(r.input, " \t\n\r")
		if len(text) == 0 {
			r.input = r.input[:0]
			return ""
		}
		if text[0] != '{' {
			return errNoObject
		}
	}
	if !jsonx.Check(r.input, maxDepth).OK() {
		return errNoObject
	}
	return ""
}

// readState computes the state that the request wants, and does not store it.
func (r *request) readState(state *sessionstate.State) (fault string) {
	m := &r.members[nameDSState]
	switch m.Kind {
	case jsonx.Absent:
		r.hasState = false
		return ""
	case jsonx.String:
		return "invalid ds_state: must be an object" // raw has no quotes
	}
	var why string
	if r.next, why = state.Apply(m.Raw); why != "" {
		return "invalid ds_state: " + why
	}
	r.hasState = true
	return ""
}

func (r *request) applyState(state *sessionstate.State) {
	if r.hasState {
		*state = r.next
	}
}

// inputHash is what two requests under one key have to share: the input without insignificant white
// space (D11). It uses scratch memory and does not allocate once that has grown.
func (r *request) inputHash() [sha256.Size]byte {
	r.text = append(r.text[:0], r.input...)
	return sha256.Sum256(jsonx.Compact(r.text))
}

// Callers tend to name one tool again and again, and to name it first. A line that begins with the
// head of the tool before is not scanned up to there, and a line that is nothing else not at all.

// headBegin and headEnd stand before and behind the AID in a head.
const (
	headBegin = `{"aid":"`
	headEnd   = `"`
)

// bareEnd is what follows a head in a line that has no other member. maxBare bounds how many such
// lines are answered before the limits of a turn are looked at.
const (
	bareEnd = "}\n"
	maxBare = 64
)

// headOf returns the head of lines that name aid, nil if its spelling there is another one, or if
// it may be an internal operation.
func headOf(aid string) []byte {
	head := jsonx.AppendString([]byte(headBegin[:len(headBegin)-1]), aid)
	if len(aid) == 0 || len(aid) > maxAID || aid[0] == '_' || len(head) != len(headBegin)+len(aid)+len(headEnd) {
		return nil
	}
	return head
}

// follows reports whether line begins with the head of e and another member.
func (e *Entry) follows(line []byte) bool {
	n := len(e.head)
	return n > 0 && len(line) > n && line[n] == ',' && string(line[:n]) == string(e.head)
}

// bare reports whether in begins with a whole line that is the head and the end of the object.
func (e *Entry) bare(in []byte) bool {
	n := len(e.head)
	return n > 0 && len(in) >= n+len(bareEnd) && string(in[n:n+len(bareEnd)]) == bareEnd && string(in[:n]) == string(e.head)
}

// answersBare reports whether nothing but running e stands between a bare line and its reply.
func (s *session) answersBare(e *Entry) bool {
	return e.Fast && e.Breaker == nil && (e.Tier == 0 || !s.enforced()) && s.authed() &&
		s.phase == connection.Open && !s.skipping && len(e.head) < s.srv.cfg.MaxLineBytes
}

// serveBare answers the bare lines that in begins with, at least one and at most most, and no more
// once the replies of the turn, which begin at out[start], are larger than it may hold.
func (s *session) serveBare(e *Entry, in, out []byte, start, most int) (used, lines int, outAfter []byte) {
	c := s.takeCall()
	c.entry, c.id = e, requestID{}
	c.req.input = append(c.req.input[:0], emptyObject...)
	bad := int64(0)
	for more := true; more; more = lines < most && len(out)-start <= connection.DefaultUnsentBytes && e.bare(in[used:]) {
		at := len(out)
		out = c.run(out, !s.observed)
		bad += failed(out[at:])
		c.next()
		used += len(e.head) + len(bareEnd)
		lines++
	}
	s.spare, s.scanned = c, 0
	s.answered.Add(e.index, s.came, int64(lines), bad)
	return used, lines, out
}
