package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"trunkline/codec/frame"
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/ndjson"
)

// reply is one answer, as far as counting it needs. code points into the bytes it was read from, or
// belongs to the dialect; it is valid until the next call.
type reply struct {
	id    uint64
	hasID bool // it names its request; else it answers the oldest one
	none  bool // it answers nothing: an event of a stream, a provisional response
	stray bool // it is about the connection, not about a request
	ok    bool
	final bool // the server closes the connection behind it
	code  []byte
}

// dialect reads the replies of one connection.
type dialect interface {
	// next reads the reply at the front of in: n is its length. With n 0 the reply is not whole; it
	// needs at least need bytes. With ended nothing follows in. It does not allocate for a reply
	// that is a success.
	next(in []byte, ended bool, r *reply) (n, need int, err error)
}

// maxReply bounds one reply, in bytes: three times what servers send at most.
const maxReply = 16 << 20

// maxCode bounds the length of an error's code as it is counted.
const maxCode = 64

var (
	errMalformed = errors.New("malformed reply")
	errFinal     = errors.New("the server closes the connection")
	errTooLarge  = errors.New("reply too large")
)

func newDialect(protocol string) dialect {
	switch protocol {
	case ProtocolKernel:
		return &frames{reply: mpack.Fields("id", "error"), fault: mpack.Fields("code")}
	case ProtocolToolhost, ProtocolThreads, ProtocolExacta:
		return newLines(protocol)
	}
	return &responses{}
}

// clip shortens a code.
func clip(code []byte) []byte { return code[:min(len(code), maxCode)] }

// frames reads the frames of kernel-ipc §2.
type frames struct {
	scan  mpack.Scanner
	reply []mpack.Field
	fault []mpack.Field
	vals  [2]mpack.Value
}

// head is how servers begin nearly all replies: a map of three whose first member is an id of ours.
const head = "\x83\xa2id\xac"

func (f *frames) next(in []byte, _ bool, r *reply) (n, need int, err error) {
	kind, payload, n := frame.Split(in, maxReply)
	switch {
	case n == frame.Malformed:
		return 0, 0, errMalformed
	case n == 0:
		return 0, max(frame.Len(in), frame.HeaderSize), nil
	}
	*r = reply{}
	switch kind {
	case frame.Response:
		r.ok = true
		if len(payload) > len(head)+idWidth && string(payload[:len(head)]) == head {
			if r.id, r.hasID = hexID(payload[len(head) : len(head)+idWidth]); r.hasID {
				return n, 0, nil
			}
		}
	case frame.Error:
	case frame.StreamChunk, frame.StreamEnd:
		r.none = true
		return n, 0, nil
	default:
		return 0, 0, errMalformed
	}
	return n, 0, f.read(payload, r)
}

// read takes a payload apart in whatever order its members are.
func (f *frames) read(payload []byte, r *reply) error {
	if len(payload) == 0 || mpack.KindOf(payload) != mpack.Map {
		return errMalformed
	}
	if _, p := f.scan.ParseFields(payload, 0, f.reply, f.vals[:]); p != mpack.NoProblem {
		return errMalformed
	}
	if id := f.vals[0]; id.Kind == mpack.Str {
		r.id, r.hasID = hexID(id.Data)
	}
	r.stray = !r.hasID
	if r.ok {
		return nil
	}
	r.code = unknownCode
	fault := f.vals[1]
	if fault.Kind != mpack.Map {
		return nil
	}
	if _, p := f.scan.ParseFields(fault.Data, 0, f.fault, f.vals[:1]); p == mpack.NoProblem && f.vals[0].Kind == mpack.Str && len(f.vals[0].Data) > 0 {
		r.code = clip(f.vals[0].Data)
	}
	return nil
}

var unknownCode = []byte("error without code")

// responses reads HTTP/1.1 responses, which come in request order (RFC 9112).
type responses struct {
	code    [16]byte
	length  int // of the body; -1: it ends with the connection
	chunked bool
}

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 64 << 10

func (h *responses) next(in []byte, ended bool, r *reply) (n, need int, err error) {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	switch {
	case end < 0 && len(in) > maxHeader:
		return 0, 0, errTooLarge
	case end < 0:
		return 0, len(in) + 1, nil
	}
	end += len("\r\n\r\n")
	if err := h.read(in[:end], r); err != nil {
		return 0, 0, err
	}
	switch {
	case h.chunked:
		n, need, err = chunked(in, end)
	case h.length < 0 && ended:
		n = len(in)
	case h.length < 0:
		need = len(in) + 1
	case h.length > maxReply-end:
		err = errTooLarge
	case end+h.length > len(in):
		need = end + h.length
	default:
		n = end + h.length
	}
	return n, need, err
}

// read takes the status and what the header holds about the body.
func (h *responses) read(header []byte, r *reply) error {
	*r = reply{}
	const version = "HTTP/1."
	if len(header) < len("HTTP/1.1 200") || string(header[:len(version)]) != version || header[8] != ' ' {
		return errMalformed
	}
	status, ok := parseDigits(header[9:12], 9, 10)
	if !ok || status < 100 {
		return errMalformed
	}
	r.final = header[7] == '0'
	r.ok = status >= 200 && status < 300
	if !r.ok {
		r.code = strconv.AppendInt(append(h.code[:0], "HTTP "...), int64(status), 10)
	}
	h.length, h.chunked = -1, false
	for line := range bytes.Lines(header) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case is(name, "content-length"):
			if h.length, ok = parseDigits(value, 9, 10); !ok {
				return errMalformed
			}
		case is(name, "transfer-encoding"):
			h.chunked = is(value, "chunked")
		case is(name, "connection") && is(value, "close"):
			r.final = true
		case is(name, "connection") && is(value, "keep-alive"):
			r.final = false
		}
	}
	r.none = status < 200
	if r.none || status == 204 || status == 304 {
		h.length, h.chunked = 0, false
	}
	r.final = r.final || h.length < 0 && !h.chunked
	return nil
}

// is compares without regard to the case of ASCII letters; word is in lower case.
func is(b []byte, word string) bool {
	return len(b) == len(word) && bytes.EqualFold(b, []byte(word))
}

// parseDigits reads a number of at most most digits, without a sign.
func parseDigits(digits []byte, most, base int) (n int, ok bool) {
	if len(digits) > most {
		return 0, false
	}
	u, err := strconv.ParseUint(string(digits), base, 32)
	return int(u), err == nil
}

// chunked finds the end of a chunked body that begins at in[at], which is the empty line behind its
// last chunk and its trailer; n is 0 if it is not there yet.
func chunked(in []byte, at int) (n, need int, err error) {
	for last := false; ; {
		line, _, found := bytes.Cut(in[at:], []byte("\r\n"))
		if !found {
			return 0, len(in) + 1, nil
		}
		at += len(line) + len("\r\n")
		if last {
			if len(line) == 0 {
				return at, 0, nil
			}
			continue
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		size, ok := parseDigits(bytes.TrimSpace(digits), 7, 16)
		switch {
		case !ok:
			return 0, 0, errMalformed
		case at+size > maxReply:
			return 0, 0, errTooLarge
		case size == 0:
			last = true
			continue
		}
		if at += size + len("\r\n"); at > len(in) {
			return 0, at, nil
		}
	}
}

// HTTPReplies counts the responses of HTTP/1.1 that in begins with, on a connection that is kept,
// and returns how many bytes they take. Any status but 2xx is an error. It allocates once, however
// many they are.
func HTTPReplies(in []byte) (used, replies int, err error) {
	var h responses
	var r reply
	for used < len(in) {
		n, _, err := h.next(in[used:], false, &r)
		switch {
		case err != nil || n == 0:
			return used, replies, err
		case !r.ok || r.final:
			return used, replies, fmt.Errorf("cannot take the reply %q", in[used:used+n])
		}
		used += n
		replies++
	}
	return used, replies, nil
}

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
