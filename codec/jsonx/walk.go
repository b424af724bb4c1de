package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// TokenKind is the kind of a token.
type TokenKind uint8

// The kinds of tokens. End is the zero kind: a walk that is over keeps returning it.
const (
	End TokenKind = iota
	ObjectStart
	ObjectEnd
	ArrayStart
	ArrayEnd
	Key
	String
	Number
	True
	False
	Null
)

// Walker pulls the tokens out of a text that Check accepted, in order, so that JSON can be written
// in another format without a tree in between. The zero Walker walks an empty text.
type Walker struct {
	b       []byte
	i       int
	nest    nest
	object  bool // the innermost open container is one
	wantKey bool // the next string is a member's name
}

// Start begins a walk over b, which must have passed Check. The Walker reads b until the walk ends.
func (w *Walker) Start(b []byte) {
	w.b, w.i, w.nest.depth, w.object, w.wantKey = b, 0, 0, false, false
}

// closingQuote returns the offset of the quote that ends the string from i on, or len(b).
func closingQuote(b []byte, i int) int {
	for i < len(b) {
		if len(b)-i >= 8 {
			m := markQuote(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch b[i] {
		case '"':
			return i
		case '\\':
			i += 2
		default:
			i++
		}
	}
	return len(b)
}

// Step returns the next token, and the kind End for ever once the text is over. raw is what stands
// between the quotes of a Key or String, still escaped, or the digits of a Number; it is a
// sub-slice of the text. Step does not allocate.
func (w *Walker) Step() (kind TokenKind, raw []byte) {
	b, i := w.b, w.i
	for i < len(b) && separator(b[i]) {
		i++
	}
	if i >= len(b) {
		w.i = len(b)
		return End, nil
	}
	switch c := b[i]; c {
	case '"':
		return w.text(i + 1)
	case '{', '[':
		return w.begin(i, c == '{'), nil
	case '}', ']':
		return w.end(i, c == '}'), nil
	case 't':
		return w.literal(True, i+len("true")), nil
	case 'f':
		return w.literal(False, i+len("false")), nil
	case 'n':
		return w.literal(Null, i+len("null")), nil
	}
	end := numberEnd(b, i)
	return w.literal(Number, end), b[i:end:end]
}

// separator reports what stands between tokens.
func separator(c byte) bool { return c <= ' ' || c == ',' || c == ':' }

// numberEnd returns the offset behind the number at i.
func numberEnd(b []byte, i int) int {
	for i++; i < len(b) && !delimiter(b[i]); {
		i++
	}
	return i
}

func delimiter(c byte) bool { return c <= ' ' || c == ',' || c == '}' || c == ']' }

// text returns the string or member name whose contents begin at i.
func (w *Walker) text(i int) (kind TokenKind, raw []byte) {
	end := closingQuote(w.b, i)
	w.i = min(end+1, len(w.b))
	if kind = String; w.wantKey {
		kind = Key
	}
	w.wantKey = w.object && kind == String
	return kind, w.b[i:end:end]
}

// literal ends a value before next.
func (w *Walker) literal(kind TokenKind, next int) TokenKind {
	w.i, w.wantKey = min(next, len(w.b)), w.object
	return kind
}

func (w *Walker) begin(i int, object bool) TokenKind {
	if w.nest.depth == MaxDepth {
		return w.stop()
	}
	w.i = i + 1
	w.nest.push(object)
	w.object, w.wantKey = object, object
	if object {
		return ObjectStart
	}
	return ArrayStart
}

func (w *Walker) end(i int, object bool) TokenKind {
	if w.nest.depth == 0 || w.object != object {
		return w.stop()
	}
	w.nest.depth--
	w.object = w.nest.inObject()
	w.i, w.wantKey = i+1, w.object
	if object {
		return ObjectEnd
	}
	return ArrayEnd
}

// stop ends a walk over text that Check would have refused.
func (w *Walker) stop() TokenKind {
	w.i = len(w.b)
	return End
}
