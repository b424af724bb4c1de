package jsonx

import "strconv"

// Kind names what is wrong with a text.
type Kind uint8

// The kinds of Problem. The zero Kind means that nothing is wrong.
const (
	Fine           Kind = iota
	UnexpectedEnd       // the text ends inside a value, or is empty
	UnexpectedChar      // a byte that cannot stand at this place
	ExtraData           // something other than whitespace after the value
	ControlChar         // a byte below 0x20 inside a string
	BadEscape           // a backslash sequence that RFC 8259 does not know
	InvalidUTF8         // a string is not UTF-8
	TooDeep             // more open containers than the limit

	// Only Strict finds the following, in text that is JSON.

	NotObject     // the text is no object, and a Scan wants one
	DuplicateKey  // a key that its object has already, however it is spelled
	ForbiddenKey  // the key __proto__
	LoneSurrogate // an escape of half a character
	LongNumber    // a number of more than 64 bytes, or an exponent beyond 400
)

// Problem is what is wrong with a text and where. It is comparable and does not refer to the text.
// Its zero value means that nothing is wrong.
type Problem struct {
	Kind   Kind
	Offset int // byte offset of the fault from the start of the text

	detail int32 // the byte at Offset, or the depth limit for TooDeep
}

// OK reports that nothing is wrong.
func (p Problem) OK() bool { return p.Kind == Fine }

// Key returns the name that the problem is about, as it is spelled in text, which is the text that
// was checked. It is nil unless the kind is DuplicateKey or ForbiddenKey.
func (p Problem) Key(text []byte) []byte {
	if p.Kind != DuplicateKey && p.Kind != ForbiddenKey {
		return nil
	}
	from := p.Offset + 1
	return text[from:closingQuote(text, from)]
}

// Append appends the human text of p to dst: ASCII only, the same text for the same input, nothing
// at all if p is OK. It allocates only if dst has no room; 64 bytes are always enough.
func (p Problem) Append(dst []byte) []byte {
	switch p.Kind {
	case Fine:
		return dst
	case UnexpectedEnd:
		dst = append(dst, "unexpected end of input"...)
	case UnexpectedChar:
		dst = appendChar(append(dst, "unexpected character "...), byte(p.detail))
	case ExtraData:
		dst = appendChar(append(dst, "unexpected character "...), byte(p.detail))
		dst = append(dst, " after the value"...)
	case ControlChar:
		dst = appendChar(append(dst, "unescaped control character "...), byte(p.detail))
	case BadEscape:
		dst = appendChar(append(dst, "invalid escape character "...), byte(p.detail))
	case InvalidUTF8:
		dst = append(dst, "invalid UTF-8"...)
	case TooDeep:
		dst = strconv.AppendInt(append(dst, "nesting deeper than "...), int64(p.detail), 10)
	case NotObject:
		dst = append(dst, "not an object"...)
	case DuplicateKey:
		dst = append(dst, "duplicate key"...)
	case ForbiddenKey:
		dst = append(dst, "forbidden key __proto__"...)
	case LoneSurrogate:
		dst = append(dst, "escape of half a character"...)
	case LongNumber:
		dst = append(dst, "number out of bounds"...)
	}
	dst = append(dst, " at offset "...)
	return strconv.AppendInt(dst, int64(p.Offset), 10)
}

// String returns the text of Append. It allocates: it is for logs and tests.
func (p Problem) String() string { return string(p.Append(nil)) }

// appendChar spells a byte so that the message stays ASCII whatever the peer sent.
func appendChar(dst []byte, c byte) []byte {
	if c > ' ' && c < 0x7f {
		return append(dst, '\'', c, '\'')
	}
	return append(dst, '0', 'x', upperHex[c>>4], upperHex[c&15])
}

const upperHex = "0123456789ABCDEF"
