package loadgen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trunkline/codec/frame"
	"trunkline/codec/jsonx"
)

// message is one method's request: bytes in which some places are written anew for each request.
// All requests of a method have the same length, so that making one is a copy and a few stores.
type message struct {
	bytes   []byte
	patches []patch
	id      int  // where the request's id of idWidth digits stands; 0 if the protocol has none
	owned   bool // it asks for a process, a thread or a project of the run
}

// idWidth is the length of an id: hexadecimal digits of a 48-bit number, whose low idPlaceBits are
// the place in flight.
const (
	idWidth     = 12
	idPlaceBits = 12
	idBits      = 48
)

type patchKind uint8

const (
	patchText   patchKind = iota // decimal digits with zeros in front
	patchSpaced                  // decimal digits with blanks in front: a JSON number
	patchBinary                  // 64 bits, big-endian: a MessagePack integer
	patchUUID
	patchOwned
)

// patch is a place in a message.
type patch struct {
	at, width int
	kind      patchKind
	field     field
}

// request is what the fields of a message are made of.
type request struct {
	id     uint64
	seq    int64
	conn   int64
	secret uint64 // of the run: uuids come from it
	owned  string // of the connection: its thread or its project, of the width of the patch
}

// append appends the message for a request. It does not allocate if dst has room.
func (m *message) append(dst []byte, r *request) []byte {
	start := len(dst)
	dst = append(dst, m.bytes...)
	out := dst[start:]
	if m.id > 0 {
		putHex(out[m.id:m.id+idWidth], r.id)
	}
	for i := range m.patches {
		p := &m.patches[i]
		to := out[p.at : p.at+p.width]
		n := uint64(r.seq)
		if p.field == fieldConn {
			n = uint64(r.conn)
		}
		switch p.kind {
		case patchText:
			putDecimal(to, n, '0')
		case patchSpaced:
			putDecimal(to, n, ' ')
		case patchBinary:
			binary.BigEndian.PutUint64(to, n)
		case patchUUID:
			putUUID(to, r.secret, uint64(r.seq))
		case patchOwned:
			copy(to, r.owned)
		}
	}
	return dst
}

const hexDigits = "0123456789abcdef"

func putHex(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = hexDigits[n&15]
		n >>= 4
	}
}

// hexID reads an id; ok is false for anything else than idWidth lower-case digits.
func hexID(text []byte) (id uint64, ok bool) {
	if len(text) != idWidth {
		return 0, false
	}
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			id = id<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			id = id<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return id, true
}

func putDecimal(to []byte, n uint64, pad byte) {
	i := len(to) - 1
	for ; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	for i--; i >= 0; i-- {
		to[i] = pad
	}
}

// putUUID writes a UUID of version 4 that only this request of this run has.
func putUUID(to []byte, secret, seq uint64) {
	high, low := scramble(secret^seq), scramble(^secret+seq)
	high = high&^0xf000 | 0x4000
	low = low&^(3<<62) | 1<<63
	putHex(to[0:8], high>>32)
	putHex(to[9:13], high>>16)
	putHex(to[14:18], high)
	putHex(to[19:23], low>>48)
	putHex(to[24:36], low)
	to[8], to[13], to[18], to[23] = '-', '-', '-', '-'
}

// findPatches compares a message made twice, each hole filled differently: what differs is where
// the holes are. It returns the places, or false if they are not where they should be.
func findPatches(low, high []byte, holes []hole, binaryNumbers bool) (patches []patch, ok bool) {
	if len(low) != len(high) {
		return nil, false
	}
	at := 0
	for _, h := range holes {
		p := patch{width: h.width, field: h.field}
		switch {
		case h.number && binaryNumbers:
			p.kind, p.width = patchBinary, 8
		case h.number:
			p.kind, p.width = patchSpaced, numberWidth
		case h.field == fieldUUID:
			p.kind = patchUUID
		case h.field >= fieldThread:
			p.kind = patchOwned
		}
		for at < len(low) && low[at] == high[at] {
			at++
		}
		p.at = at
		for range p.width {
			if at == len(low) || low[at] == high[at] {
				return nil, false
			}
			at++
		}
		patches = append(patches, p)
	}
	return patches, slices.Equal(low[at:], high[at:])
}

// identity is what makes one run different from all others.
type identity uint64

func (id identity) String() string { return fmt.Sprintf("%08x", uint32(id)) }

// field is what stands at a place of a message that differs from request to request.
type field uint8

const (
	fieldSeq  field = iota // the request's number
	fieldConn              // its connection's
	fieldUUID
	fieldThread  // the thread of its connection
	fieldProject // the project of the run
)

// The widths of fields as text. They are fixed, so that a message is one template and its length is
// known beforehand.
const (
	seqWidth  = 12 // MaxRate for MaxDuration
	connWidth = 5
	uuidWidth = 36
	// threadWidth is the length of every identifier of a thread (threads §3.3).
	threadWidth = len("th_") + 26
)

var fields = map[string]struct {
	field field
	width int
}{"seq": {fieldSeq, seqWidth}, "conn": {fieldConn, connWidth}, "uuid": {fieldUUID, uuidWidth}, "thread": {fieldThread, threadWidth}, "project": {fieldProject, uuidWidth}}

// hole is a field in a body: a number or part of a string.
type hole struct {
	field  field
	width  int
	number bool
}

// text is a body taken apart: holes[i] comes behind parts[i].
type text struct {
	parts []string
	holes []hole
}

// pidOf is the process of a connection, with the placeholders of a body.
const pidOf = "bench-{{run}}-{{conn}}"

// parse takes a body apart. pid reports whether it asks for a process of the run.
func parse(body string, id identity) (t text, pid bool, err error) {
	pid = strings.Contains(body, "{{pid}}")
	if root := jsonx.AppendString(nil, rootOf(id)); strings.Contains(body, "{{root}}") {
		body = strings.ReplaceAll(body, "{{root}}", string(root[1:len(root)-1]))
	}
	body = strings.ReplaceAll(body, "{{pid}}", pidOf)
	body = strings.ReplaceAll(body, "{{run}}", id.String())
	quoted := false
	for {
		part, rest, found := strings.Cut(body, "{{")
		t.parts = append(t.parts, part)
		if !found {
			return t, pid, nil
		}
		quoted = insideString(part, quoted)
		name, rest, found := strings.Cut(rest, "}}")
		f, known := fields[name]
		if !found || !known {
			return t, pid, fmt.Errorf("cannot use placeholder {{%.20s: want {{seq}}, {{conn}}, {{uuid}}, {{run}}, {{pid}}, {{thread}}, {{root}} or {{project}}", name)
		}
		if !quoted && (f.field >= fieldUUID || !standsAlone(part, rest)) {
			return t, pid, fmt.Errorf("cannot use placeholder {{%s}} outside of a string: it is no value there", name)
		}
		t.holes = append(t.holes, hole{field: f.field, width: f.width, number: !quoted})
		body = rest
	}
}

// standsAlone reports whether what is between two parts of JSON text is a whole value.
func standsAlone(before, after string) bool {
	const space = " \t\r\n"
	before, after = strings.TrimRight(before, space), strings.TrimLeft(after, space)
	return before != "" && strings.ContainsAny(before[len(before)-1:], ":,[") && (after == "" || strings.ContainsAny(after[:1], ",]}"))
}

// insideString reports whether JSON text ends inside a string, given how it began.
func insideString(part string, quoted bool) bool {
	for i := 0; i < len(part); i++ {
		switch {
		case part[i] == '"':
			quoted = !quoted
		case part[i] == '\\' && quoted:
			i++
		}
	}
	return quoted
}

// fill puts text into all holes: low and high differ in every byte, and so do the numbers they
// stand for.
func (t *text) fill(low bool) []byte {
	var out bytes.Buffer
	for i, part := range t.parts {
		out.WriteString(part)
		if i == len(t.holes) {
			break
		}
		switch h := t.holes[i]; {
		case h.number && low:
			out.WriteString(lowNumber)
		case h.number:
			out.WriteString(highNumber)
		case low:
			out.WriteString(strings.Repeat("0", h.width))
		default:
			out.WriteString(strings.Repeat("1", h.width))
		}
	}
	return out.Bytes()
}

// Two numbers of 64 bits that differ in every byte and every digit.
const (
	lowNumber   = "7674391783680987952"
	highNumber  = "3733718890569102525"
	numberWidth = len(lowNumber)
)

// compile makes the message of one share.
func compile(t *Target, s *Share, id identity) (*message, error) {
	m, err := compileBody(t, s, id)
	if err != nil {
		return nil, fmt.Errorf("cannot use the body of %s: %w", s.Name, err)
	}
	return m, nil
}

func compileBody(t *Target, s *Share, id identity) (*message, error) {
	body := string(s.Body)
	root := strings.Contains(body, "{{root}}")
	if t.Protocol == ProtocolExacta {
		if !strings.HasPrefix(strings.TrimSpace(body), "{") {
			return nil, errors.New("want a JSON object")
		}
		body = wrap(s.Name, body)
	}
	parts, pid, err := parse(body, id)
	if err != nil {
		return nil, err
	}
	has := func(f field) bool {
		return slices.ContainsFunc(parts.holes, func(h hole) bool { return h.field == f })
	}
	thread, project := has(fieldThread), has(fieldProject) || root
	switch {
	case pid && t.Protocol != ProtocolKernel:
		return nil, errors.New("cannot use placeholder {{pid}}: only the kernel protocol has processes")
	case thread && t.Protocol != ProtocolThreads:
		return nil, errors.New("cannot use placeholder {{thread}}: only the threads protocol has threads")
	case project && t.Protocol != ProtocolExacta:
		return nil, errors.New("cannot use placeholders {{root}} and {{project}}: only the exacta protocol has projects")
	}
	low, err := encode(t, s.Name, parts.fill(true))
	if err != nil {
		return nil, err
	}
	high, err := encode(t, s.Name, parts.fill(false))
	if err != nil {
		return nil, err
	}
	patches, ok := findPatches(low, high, parts.holes, t.Protocol == ProtocolKernel)
	if !ok {
		return nil, errors.New("cannot find its placeholders again: a key given twice has one")
	}
	m := &message{bytes: low, patches: patches, owned: pid || thread || project}
	switch t.Protocol {
	case ProtocolKernel:
		m.id = frame.HeaderSize + len("\x84\xa2id") + 1
	case ProtocolThreads:
		m.id = len(lineHead)
	case ProtocolExacta:
		m.id = exactaID
		m.patches = append(m.patches, patch{at: exactaConn, width: connInID, kind: patchText, field: fieldConn})
	}
	return m, nil
}
