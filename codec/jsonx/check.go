package jsonx

import (
	"bytes"
	"strconv"
)

// Check reports whether b is exactly one JSON value by RFC 8259: any top-level value, whitespace
// around it allowed, valid UTF-8, at most maxDepth open containers (more than MaxDepth acts as
// MaxDepth, below one allows only scalars). An empty text is not JSON (kernel-ipc D7). Escaped lone
// surrogates are allowed.
//
// The Problem names the first fault. Check neither allocates nor keeps b.
func Check(b []byte, maxDepth int) Problem {
	c := checker{b: b, maxDepth: min(max(maxDepth, 0), MaxDepth)}
	i, kind := c.run(skipSpace(b, 0))
	if kind == Fine {
		i, kind = textEnd(b, i)
	}
	return problemAt(b, i, kind, c.maxDepth)
}

// problemAt returns the problem of a kind that Check finds, at offset i of b.
func problemAt(b []byte, i int, kind Kind, maxDepth int) Problem {
	switch kind {
	case Fine:
		return Problem{}
	case UnexpectedEnd, InvalidUTF8:
		return Problem{Kind: kind, Offset: i}
	case TooDeep:
		return Problem{Kind: kind, Offset: i, detail: int32(maxDepth)}
	}
	return Problem{Kind: kind, Offset: i, detail: int32(b[i])}
}

type checker struct {
	b        []byte
	maxDepth int
	nest     nest
}

// textEnd checks that nothing but space follows the value before i.
func textEnd(b []byte, i int) (int, Kind) {
	if i = skipSpace(b, i); i < len(b) {
		return i, ExtraData
	}
	return i, Fine
}

// run checks the one value at i and returns the offset behind it.
func (c *checker) run(i int) (next int, kind Kind) {
	b, object := c.b, false // object: the innermost open container is one
	for {
		if i < len(b) && (b[i] == '{' || b[i] == '[') {
			if c.nest.depth >= c.maxDepth {
				return i, TooDeep
			}
			opened := b[i] == '{'
			if i = skipSpace(b, i+1); i >= len(b) || b[i] != closer(opened) {
				object = opened
				c.nest.push(object)
				if object {
					if i, kind = checkName(b, i); kind != Fine {
						return i, kind
					}
				}
				continue
			}
			i++
		} else if i, kind = checkScalar(b, i); kind != Fine {
			return i, kind
		}
		if i, object, kind = c.after(i, object); c.nest.depth == 0 || kind != Fine {
			return i, kind
		}
	}
}

// after closes every container that ends at i and moves to the next member's value, if one is still
// open. object is, before and after, whether the innermost one is an object.
func (c *checker) after(i int, object bool) (next int, newObject bool, kind Kind) {
	b := c.b
	for c.nest.depth > 0 {
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if i >= len(b) {
			return len(b), object, UnexpectedEnd
		}
		switch b[i] {
		case ',':
			if i++; i < len(b) && b[i] <= ' ' {
				i = skipSpace(b, i)
			}
			if object {
				i, kind = checkName(b, i)
			}
			return i, object, kind
		case closer(object):
			c.nest.depth--
			object = c.nest.inObject()
			i++
		default:
			return i, object, UnexpectedChar
		}
	}
	return i, false, Fine
}

// checkScalar checks the string, number or literal at i and returns the offset behind it.
func checkScalar(b []byte, i int) (next int, kind Kind) {
	if i >= len(b) {
		return len(b), UnexpectedEnd
	}
	switch b[i] {
	case '"':
		next, _, kind = scanString(b, i+1)
		return next, kind
	case 't':
		return scanLiteral(b, i, "true")
	case 'f':
		return scanLiteral(b, i, "false")
	case 'n':
		return scanLiteral(b, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return scanNumber(b, i)
	}
	return i, UnexpectedChar
}

// checkName checks the member name at i and its colon and returns the offset of the member's value.
func checkName(b []byte, i int) (int, Kind) {
	if i >= len(b) || b[i] != '"' {
		return fault(b, i)
	}
	i, _, kind := scanString(b, i+1)
	if kind != Fine {
		return i, kind
	}
	return valueBehind(b, i)
}

// valueBehind checks the colon after the name before i and returns the offset of the member's
// value.
func valueBehind(b []byte, i int) (int, Kind) {
	// In nearly all text the colon is right behind the quote, and the value at most one space
	// later.
	if i < len(b) && b[i] <= ' ' {
		i = skipSpace(b, i)
	}
	if i >= len(b) || b[i] != ':' {
		return fault(b, i)
	}
	if i++; i < len(b) && b[i] <= ' ' {
		i = skipSpace(b, i)
	}
	return i, Fine
}

func closer(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

// TrimBOM returns b without a leading byte order mark, which every surface skips before a text from
// outside (RFC 8259, section 8.1). A second one is no JSON.
func TrimBOM(b []byte) []byte {
	if len(b) > 0 && b[0] == byteOrderMark[0] {
		return bytes.TrimPrefix(b, byteOrderMark)
	}
	return b
}

var byteOrderMark = []byte("\uFEFF")

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
