package loadgen

import (
	"bytes"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
)

// lines reads the replies of toolhost §2, threads §2.4 and exacta §3: one line each, in request
// order where they have no ids. A command of exacta that an idle project refuses because of its
// state reached the queue of the project, and is answered well.
type lines struct {
	protocol string
	id       int // the length of ids, whose last digits are ours; 0 if there are none
	names    *jsonx.Names
	members  [4]jsonx.Member
	fault    *jsonx.Names
	code     [1]jsonx.Member
	scanned  int
}

func newLines(protocol string) *lines {
	l := &lines{protocol: protocol, fault: jsonx.NewNames("code")}
	switch protocol {
	case ProtocolExacta:
		l.id, l.names = uuidWidth, jsonx.NewNames("ok", "type", "error", "request_id")
	case ProtocolThreads:
		l.id = idWidth
		fallthrough
	default:
		l.names = jsonx.NewNames("ok", "status", "error", "id")
	}
	return l
}

// wellBegun are the starts of nearly all good replies.
var wellBegun = [...]string{`{"ok":true,`, `{"ok": true,`, `{"ok":true}`}

// lineHead begins a numbered line, and its reply; wellNumbered follows the id in a good one.
const (
	lineHead     = `{"id":"`
	wellNumbered = `","ok":true,`
)

// begin reads the start of nearly all good replies.
func (l *lines) begin(line []byte, r *reply) (ok bool) {
	const end = len(lineHead) + idWidth
	if l.id > 0 {
		if len(line) < end+len(wellNumbered) || string(line[:len(lineHead)]) != lineHead || string(line[end:end+len(wellNumbered)]) != wellNumbered {
			return false
		}
		r.id, r.hasID = hexID(line[len(lineHead):end])
		return r.hasID
	}
	for _, start := range wellBegun {
		if len(line) >= len(start) && string(line[:len(start)]) == start {
			return true
		}
	}
	return false
}

func (l *lines) next(in []byte, ended bool, r *reply) (n, need int, err error) {
	line, n, status, scanned := ndjson.Split(in, l.scanned, maxReply)
	l.scanned = scanned
	switch status {
	case ndjson.TooLong:
		return 0, 0, errTooLarge
	case ndjson.More:
		if ended && l.id == 0 { // the last line needs no end
			if line, status := ndjson.Last(in, maxReply); status == ndjson.Line && l.read(line, r) == nil {
				return len(in), 0, nil
			}
		}
		return 0, len(in) + 1, nil
	}
	return n, 0, l.read(line, r)
}

func (l *lines) read(line []byte, r *reply) error {
	*r = reply{}
	if r.ok = l.begin(line, r); r.ok {
		return nil
	}
	if res, _ := l.names.Scan(line, jsonx.MaxDepth, l.members[:]); res != jsonx.ScanOK {
		return errMalformed
	}
	if kind := l.members[1]; l.protocol == ProtocolExacta && kind.Kind == jsonx.String && string(kind.Raw) == "event" {
		r.none = true
		return nil
	}
	if id := l.members[3]; l.id > 0 {
		if id.Kind == jsonx.String && len(id.Raw) == l.id {
			r.id, r.hasID = hexID(id.Raw[l.id-idWidth:])
		}
		r.stray = !r.hasID
	}
	l.readCode(r)
	r.ok = r.ok || l.protocol == ProtocolExacta && string(r.code) == expectedCode
	return nil
}

// readCode reads whether a line is good, and the code of its error.
func (l *lines) readCode(r *reply) {
	if r.ok = l.members[0].Kind == jsonx.True; r.ok {
		return
	}
	r.code = unknownCode
	if m := l.members[2]; m.Kind == jsonx.ObjectStart {
		if l.fault.Scan(m.Raw, jsonx.MaxDepth, l.code[:]); l.code[0].Kind == jsonx.String && len(l.code[0].Raw) > 0 {
			r.code = clip(l.code[0].Raw)
		}
	} else if m := l.members[1]; m.Kind == jsonx.String && len(m.Raw) > 0 && string(m.Raw) != "OK" {
		r.code = clip(m.Raw)
	} else if m := l.members[2]; m.Kind == jsonx.String && len(m.Raw) > 0 {
		// What stands behind a colon is a detail: an identifier, a limit.
		kind, _, _ := bytes.Cut(m.Raw, []byte(":"))
		r.code = clip(kind)
	}
}
