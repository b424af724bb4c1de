package transcode

import (
	"bytes"
	"encoding/binary"
	"errors"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
)

// AppendMsgPack appends the MessagePack of text, JSON that passed jsonx.Check, to dst: members in
// their order, repeated keys included, strings without escapes (a lone surrogate as U+FFFD),
// integers of the int64 and uint64 ranges as integers, other numbers as float64, nil beyond the
// float64 range (kernel-ipc §3.3). Everything takes its smallest class. It allocates only if dst
// has no room or a number overflows, and reads text once.
//
// The number of members is known at the end of a container, so room is left for the widest header
// and the contents move up. Nesting multiplies the moves: beyond maxMoves times the length of the
// text, wide headers stay, and one pass over the result narrows them. Time stays linear in the
// text.
func AppendMsgPack(dst, text []byte) []byte {
	t := transcoder{dst: dst, start: len(dst), moves: maxMoves * len(text)}
	return t.run(text)
}

// EncodeJSON returns the MessagePack of one JSON value. It refuses text that jsonx.Check refuses
// and numbers beyond the float64 range. AppendJSON returns the same text up to white space, escapes
// and the spelling of floats.
func EncodeJSON(text []byte) ([]byte, error) {
	if p := jsonx.Check(text, jsonx.MaxDepth); !p.OK() {
		return nil, errors.New("cannot parse JSON: " + p.String())
	}
	t := transcoder{moves: maxMoves * len(text)}
	out := t.run(text)
	if t.overflow {
		return nil, errors.New("cannot parse JSON: a number is out of range")
	}
	return out, nil
}

// maxMoves is how many times a byte of the result is moved at most, on average: more often than
// envelopes nest, and still cheaper than reading the text once.
const maxMoves = 16

// The leads of containers with a 32-bit count, and the size of such a header.
const (
	array32    = 0xdd
	map32      = 0xdf
	wideHeader = 5
)

// transcoder writes the tokens of one text.
type transcoder struct {
	dst     []byte
	start   int
	members uint32 // so far, of the innermost open container
	moves   int    // bytes that may still be moved; negative: headers stay wide
	depth   int
	// overflow is set by a number beyond the float64 range.
	overflow bool
	open     [jsonx.MaxDepth]openContainer
}

// openContainer holds where a container's header is, counted from the start of the output, and the
// members so far of the one around it.
type openContainer struct{ at, outer uint32 }

func (t *transcoder) run(text []byte) []byte {
	var w jsonx.Walker
	w.Start(text)
	for kind, raw := w.Step(); kind != jsonx.End; kind, raw = w.Step() {
		t.token(kind, raw)
	}
	if t.moves < 0 {
		return t.dst[:t.start+len(mpack.Narrow(t.dst[t.start:]))]
	}
	return t.dst
}

func (t *transcoder) token(kind jsonx.TokenKind, raw []byte) {
	switch kind {
	case jsonx.Key:
		t.dst = appendText(t.dst, raw)
		return
	case jsonx.ObjectEnd, jsonx.ArrayEnd:
		t.end()
		return
	}
	t.members++
	switch kind {
	case jsonx.ObjectStart:
		t.begin(map32)
	case jsonx.ArrayStart:
		t.begin(array32)
	case jsonx.String:
		t.dst = appendText(t.dst, raw)
	case jsonx.Number:
		t.number(raw)
	case jsonx.True, jsonx.False:
		t.dst = mpack.AppendBool(t.dst, kind == jsonx.True)
	default:
		t.dst = mpack.AppendNil(t.dst)
	}
}

func (t *transcoder) begin(lead byte) {
	t.open[t.depth] = openContainer{uint32(len(t.dst) - t.start), t.members}
	t.depth++
	t.members = 0
	t.dst = append(t.dst, lead, 0, 0, 0, 0)
}

func (t *transcoder) end() {
	t.depth--
	o := t.open[t.depth]
	at := t.start + int(o.at)
	contents := t.dst[at+wideHeader:]
	if t.moves -= len(contents); t.moves < 0 {
		t.moves = -1
		binary.BigEndian.PutUint32(t.dst[at+1:], t.members)
	} else if t.dst[at] == map32 {
		t.dst = append(mpack.AppendMap(t.dst[:at], int(t.members)), contents...)
	} else {
		t.dst = append(mpack.AppendArray(t.dst[:at], int(t.members)), contents...)
	}
	t.members = o.outer
}

// appendText appends the meaning of raw, the contents of a JSON string.
func appendText(dst, raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return mpack.AppendStr(dst, raw)
	}
	// The length goes in front and is known afterwards: the text moves up to its header.
	start := len(dst)
	dst = jsonx.AppendUnescaped(append(dst, make([]byte, wideHeader)...), raw)
	return mpack.AppendStr(dst[:start], dst[start+wideHeader:])
}

func (t *transcoder) number(raw []byte) {
	if n, ok := jsonx.ParseInt(raw); ok {
		t.dst = mpack.AppendInt(t.dst, n)
		return
	}
	switch n := jsonx.ParseNumber(raw); {
	case n.Kind == jsonx.Uint:
		t.dst = mpack.AppendUint(t.dst, n.Uint)
	case n.Overflow:
		t.overflow = true
		t.dst = mpack.AppendNil(t.dst)
	default:
		t.dst = mpack.AppendFloat(t.dst, n.Float)
	}
}
