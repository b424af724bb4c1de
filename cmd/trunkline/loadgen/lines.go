package loadgen

import (
	"bytes"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
)

// lines reads the replies of toolhost §2 and, where they are numbered, of threads §2.4: one line
// each, in request order.
type lines struct {
	numbered bool // each begins with the id of its request
	names    *jsonx.Names
	members  [4]jsonx.Member
	fault    *jsonx.Names
	code     [1]jsonx.Member
	scanned  int
}

func newLines(numbered bool) *lines {
	return &lines{numbered: numbered, names: jsonx.NewNames("ok", "status", "error", "id"), fault: jsonx.NewNames("code")}
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
	if l.numbered {
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
	line, n, need, err := l.split(in)
	switch {
	case n > 0:
		err = l.read(line, r)
	case ended && !l.numbered: // its last line needs no end
		if line, status := ndjson.Last(in, maxReply); status == ndjson.Line && l.read(line, r) == nil {
			n = len(in)
		}
	}
	return n, need, err
}

// split cuts the first line, as next does.
func (l *lines) split(in []byte) (line []byte, n, need int, err error) {
	line, n, status, scanned := ndjson.Split(in, l.scanned, maxReply)
	l.scanned = scanned
	switch status {
	case ndjson.More:
		return nil, 0, len(in) + 1, nil
	case ndjson.TooLong:
		return nil, 0, 0, errTooLarge
	}
	return line, n, 0, nil
}

func (l *lines) read(line []byte, r *reply) error {
	*r = reply{}
	if r.ok = l.begin(line, r); r.ok {
		return nil
	}
	if res, _ := l.names.Scan(line, jsonx.MaxDepth, l.members[:]); res != jsonx.ScanOK {
		return errMalformed
	}
	if l.numbered {
		if m := l.members[3]; m.Kind == jsonx.String {
			r.id, r.hasID = hexID(m.Raw)
		}
		r.stray = !r.hasID
	}
	l.readCode(r)
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
