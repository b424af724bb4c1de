package loadgen

import (
	"bytes"
	"fmt"
	"strings"
)

// identity is what makes one run different from all others.
type identity uint64

func (id identity) String() string { return fmt.Sprintf("%08x", uint32(id)) }

// field is what stands at a place of a message that differs from request to request.
type field uint8

const (
	fieldSeq  field = iota // the request's number
	fieldConn              // its connection's
	fieldUUID
)

// The widths of fields as text. They are fixed, so that a message is one template and its length is
// known beforehand.
const (
	seqWidth  = 12 // MaxRate for MaxDuration
	connWidth = 5
	uuidWidth = 36
)

var fields = map[string]struct {
	field field
	width int
}{"seq": {fieldSeq, seqWidth}, "conn": {fieldConn, connWidth}, "uuid": {fieldUUID, uuidWidth}}

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
			return t, pid, fmt.Errorf("cannot use placeholder {{%.20s: want {{seq}}, {{conn}}, {{uuid}}, {{run}} or {{pid}}", name)
		}
		if !quoted && (f.field == fieldUUID || !standsAlone(part, rest)) {
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
