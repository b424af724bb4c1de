package loadgen

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"trunkline/codec/frame"
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// message is one method's request: bytes in which some places are written again for each request.
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
	conn      bool // the connection's number, not the request's
}

// request is what the patches of a message are filled with.
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
		if p.conn {
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

// hexID reads an id; ok is false for anything else than idWidth digits.
func hexID(text []byte) (id uint64, ok bool) {
	if len(text) != idWidth {
		return 0, false
	}
	var b [8]byte
	_, err := hex.Decode(b[len(b)-idWidth/2:], text)
	return binary.BigEndian.Uint64(b[:]), err == nil
}

// putDecimal writes the last digits of n, with pad in front.
func putDecimal(to []byte, n uint64, pad byte) {
	for i := len(to) - 1; i >= 0; i-- {
		if to[i] = pad; n > 0 || i == len(to)-1 {
			to[i] = byte('0' + n%10)
		}
		n /= 10
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

// The widths of what differs from request to request, as text. They are fixed, so that a message is
// one template and its length is known beforehand.
const (
	seqWidth  = 12 // MaxRate for MaxDuration
	connWidth = 5
	uuidWidth = 36
	// threadWidth is the length of every identifier of a thread (threads §3.3).
	threadWidth = len("th_") + 26
)

// placeholders have marks, which stand for their values while a message is made: in a string, and
// as a number where they may be one.
var placeholders = map[string]struct{ text, number string }{
	"seq":     {markOf("s", seqWidth), "7674391783680987952"},
	"conn":    {markOf("c", connWidth), "3733718890569102525"},
	"uuid":    {text: markOf("u", uuidWidth)},
	"thread":  {text: markOf("t", threadWidth)},
	"project": {text: markOf("p", uuidWidth)},
}

// markOf is a mark as wide as the value. No body has it: in one, {{ begins a placeholder.
func markOf(letter string, width int) string {
	return "{{" + letter + strings.Repeat("}", width-len("{{")-len(letter))
}

// marks are all that a message can have, numbers also as MessagePack has them.
var marks = []struct {
	text string
	kind patchKind
	conn bool
}{
	{placeholders["seq"].text, patchText, false},
	{placeholders["conn"].text, patchText, true},
	{placeholders["uuid"].text, patchUUID, false},
	{placeholders["thread"].text, patchOwned, false},
	{placeholders["project"].text, patchOwned, false},
	{placeholders["seq"].number, patchSpaced, false},
	{placeholders["conn"].number, patchSpaced, true},
	{packed(placeholders["seq"].number), patchBinary, false},
	{packed(placeholders["conn"].number), patchBinary, true},
}

func packed(number string) string {
	n, _ := strconv.ParseUint(number, 10, 64) // they are numbers
	return string(binary.BigEndian.AppendUint64(nil, n))
}

// mark replaces the placeholders of a body by their marks, of which it returns the number.
func mark(body, run string) (marked string, n int, err error) {
	root := jsonx.AppendString(nil, rootOf(run))
	body = strings.NewReplacer("{{run}}", run, "{{pid}}", "bench-"+run+"-{{conn}}",
		"{{root}}", string(root[1:len(root)-1])).Replace(body)
	var out strings.Builder
	quoted := false
	for {
		part, rest, found := strings.Cut(body, "{{")
		out.WriteString(part)
		if !found {
			return out.String(), n, nil
		}
		quoted = insideString(part, quoted)
		name, rest, found := strings.Cut(rest, "}}")
		p, known := placeholders[name]
		switch {
		case !found || !known:
			return "", 0, fmt.Errorf("cannot use placeholder {{%.20s: want {{seq}}, {{conn}}, {{uuid}}, {{run}}, {{pid}}, {{thread}}, {{root}} or {{project}}", name)
		case quoted:
			out.WriteString(p.text)
		case p.number == "" || !standsAlone(part, rest):
			return "", 0, fmt.Errorf("cannot use placeholder {{%s}} outside of a string: it is no value there", name)
		default:
			out.WriteString(p.number)
		}
		n++
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

// compile makes the message of one share.
func compile(t *Target, s *Share, run string) (_ *message, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot use the body of %s: %w", s.Name, err)
		}
	}()
	body := string(s.Body)
	uses := func(placeholder string) bool { return strings.Contains(body, "{{"+placeholder+"}}") }
	pid, thread, project := uses("pid"), uses("thread"), uses("project") || uses("root")
	switch {
	case pid && t.Protocol != ProtocolKernel:
		return nil, errors.New("cannot use placeholder {{pid}}: only the kernel protocol has processes")
	case thread && t.Protocol != ProtocolThreads:
		return nil, errors.New("cannot use placeholder {{thread}}: only the threads protocol has threads")
	case project && t.Protocol != ProtocolExacta:
		return nil, errors.New("cannot use placeholders {{root}} and {{project}}: only the exacta protocol has projects")
	}
	if t.Protocol == ProtocolExacta {
		if !strings.HasPrefix(strings.TrimSpace(body), "{") {
			return nil, errors.New("want a JSON object")
		}
		body = wrap(idInBody, s.Name, body)
	}
	body, n, err := mark(body, run)
	if err != nil {
		return nil, err
	}
	m := &message{owned: pid || thread || project}
	var more []patch
	switch t.Protocol {
	case ProtocolKernel:
		m.id = frame.HeaderSize + len("\x84\xa2id") + 1
		m.bytes, err = encodeFrame(s.Name, []byte(body))
	case ProtocolToolhost:
		m.bytes, err = encodeLine([]byte(body))
	case ProtocolThreads:
		m.id = len(lineHead)
		m.bytes, err = encodeCall(s.Name, []byte(body))
	case ProtocolExacta:
		m.id, more = exactaID, []patch{{at: exactaConn, width: connInID, kind: patchText, conn: true}}
		m.bytes, err = encodeLine([]byte(body))
	default:
		m.bytes, err = encodeHTTP(t, []byte(body))
	}
	if err != nil {
		return nil, err
	}
	for _, mark := range marks {
		at := 0
		for n := bytes.Index(m.bytes, []byte(mark.text)); n >= 0; n = bytes.Index(m.bytes[at:], []byte(mark.text)) {
			m.patches = append(m.patches, patch{at: at + n, width: len(mark.text), kind: mark.kind, conn: mark.conn})
			at += n + len(mark.text)
		}
	}
	if len(m.patches) != n {
		return nil, errors.New("cannot find its placeholders again: a key given twice has one")
	}
	m.patches = append(m.patches, more...)
	return m, nil
}

func encodeFrame(name string, body []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, errors.New("want a JSON object")
	}
	packed, err := transcode.EncodeJSON(body)
	if err != nil {
		return nil, err
	}
	service, method, _ := strings.Cut(name, ".")
	out := frame.Begin(nil, frame.Request)
	out = mpack.AppendRequest(out, strings.Repeat("0", idWidth), service, method, string(packed))
	frame.Finish(out, 0)
	return out, nil
}

// encodeLine puts a request on one line.
func encodeLine(body []byte) ([]byte, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return nil, fmt.Errorf("want JSON: %w", err)
	}
	if line.Len() == 0 || line.Bytes()[0] != '{' {
		return nil, errors.New("want a JSON object")
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

// encodeCall puts the params of a method on a line (threads §2.4).
func encodeCall(name string, params []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(params), []byte("{")) {
		return nil, errors.New("want a JSON object")
	}
	line := append([]byte(lineHead), strings.Repeat("0", idWidth)...)
	line = jsonx.AppendString(append(line, `","method":`...), name)
	return encodeLine(append(append(append(line, `,"params":`...), params...), '}'))
}

func encodeHTTP(t *Target, body []byte) ([]byte, error) {
	if !json.Valid(body) {
		return nil, errors.New("want JSON")
	}
	u, err := url.Parse(t.Addr)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	path := u.RequestURI()
	if path == "/" && !strings.HasSuffix(u.String(), "/") {
		path = defaultPath
	}
	out.WriteString("POST " + path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: trunkline-bench\r\n")
	out.WriteString("Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	out.Write(body)
	return out.Bytes(), nil
}

// defaultPath is where a server takes envelopes (envelope §2.3).
const defaultPath = "/api/v1/process"
