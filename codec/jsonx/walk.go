package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// TokenKind says what a Token is.
type TokenKind uint8

// The kinds of Token. End is the zero kind: a walk that is over keeps returning it.
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

// Token is one step of a walk.
type Token struct {
	Kind TokenKind
	// Count is the number of members of the container that begins here (ObjectStart, ArrayStart), else 0. Repeated keys
	// count each time.
	Count int
	// Raw is the contents between the quotes, still escaped (Key, String), or the digits (Number), else nil. It is a
	// sub-slice of the text given to Reset and valid as long as that text is.
	Raw []byte
}

// maxKeptCounts bounds the memory an idle Walker keeps for one hostile text full of brackets: 64 KiB of member counts.
const maxKeptCounts = 16 << 10

// Walker pulls the tokens out of a text that Check accepted, in order, so that JSON can be written in another format without a
// tree in between. The zero Walker walks an empty text; Reset makes it reusable, and a warm one does not allocate.
type Walker struct {
	b       []byte
	i       int
	nest    nest
	wantKey bool
	opened  int      // containers begun so far: the index into counts
	counts  []uint32 // members of each container, in order of their opening brackets
	open    []uint32 // scratch of countMembers: indexes of the open containers, at most MaxDepth
}

// Reset starts a walk over b, which must have passed Check. The Walker reads b until the walk ends; Reset(nil) lets go of it.
// It reads b once to count members, so that a whole walk costs time linear in len(b) however deep it nests. It allocates only
// when b has more containers than any text before.
func (w *Walker) Reset(b []byte) {
	w.b, w.i, w.nest.depth, w.wantKey, w.opened = b, 0, 0, false, 0
	if cap(w.counts) > maxKeptCounts {
		w.counts = nil
	}
	w.counts = w.counts[:0]
	w.countMembers()
}

// countMembers fills counts. One more member is known at each comma; which container it belongs to comes from the stack of
// open ones.
func (w *Walker) countMembers() {
	b, open := w.b, w.open[:0]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = closingQuote(b, i+1)
		case '{', '[':
			if len(open) == MaxDepth {
				return
			}
			open = append(open, uint32(len(w.counts)))
			w.counts = append(w.counts, firstMember(b, i+1))
		case ',':
			if len(open) > 0 {
				w.counts[open[len(open)-1]]++
			}
		case '}', ']':
			open = open[:max(len(open)-1, 0)]
		}
	}
	w.open = open
}

// firstMember returns 1 if the container opened before i has a member, else 0.
func firstMember(b []byte, i int) uint32 {
	if i = skipSpace(b, i); i < len(b) && (b[i] == '}' || b[i] == ']') {
		return 0
	}
	return 1
}

// closingQuote returns the offset of the quote that ends the string whose contents begin at i, or len(b).
func closingQuote(b []byte, i int) int {
	for i < len(b) {
		if len(b)-i >= 8 {
			m := markSpecial(binary.LittleEndian.Uint64(b[i:]))
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

// Next returns the next token, and a token of kind End for ever once the text is over. It does not allocate.
func (w *Walker) Next() Token {
	i := w.i
	for i < len(w.b) && (isSpace(w.b[i]) || w.b[i] == ',' || w.b[i] == ':') {
		i++
	}
	if w.i = i; i >= len(w.b) {
		return Token{}
	}
	switch c := w.b[i]; c {
	case '"':
		return w.text()
	case '{', '[':
		return w.begin(c == '{')
	case '}', ']':
		return w.end(c == '}')
	case 't':
		return w.scalar(True, i+len("true"))
	case 'f':
		return w.scalar(False, i+len("false"))
	case 'n':
		return w.scalar(Null, i+len("null"))
	}
	end := i + 1
	for end < len(w.b) && !delimiter(w.b[end]) {
		end++
	}
	t := w.scalar(Number, end)
	t.Raw = w.b[i:end:end]
	return t
}

func delimiter(c byte) bool { return c <= ' ' || c == ',' || c == '}' || c == ']' }

// text returns the string or member name whose opening quote is next.
func (w *Walker) text() Token {
	start := w.i + 1
	end := closingQuote(w.b, start)
	raw := w.b[start:end:end]
	if w.wantKey {
		w.i, w.wantKey = min(end+1, len(w.b)), false
		return Token{Kind: Key, Raw: raw}
	}
	t := w.scalar(String, end+1)
	t.Raw = raw
	return t
}

// scalar ends a value before next.
func (w *Walker) scalar(kind TokenKind, next int) Token {
	w.i = min(next, len(w.b))
	w.wantKey = w.nest.inObject()
	return Token{Kind: kind}
}

func (w *Walker) begin(object bool) Token {
	if w.nest.depth == MaxDepth || w.opened >= len(w.counts) {
		return w.stop()
	}
	count := int(w.counts[w.opened])
	w.i++
	w.opened++
	w.nest.push(object)
	w.wantKey = object
	if object {
		return Token{Kind: ObjectStart, Count: count}
	}
	return Token{Kind: ArrayStart, Count: count}
}

func (w *Walker) end(object bool) Token {
	if w.nest.depth == 0 || w.nest.inObject() != object {
		return w.stop()
	}
	w.nest.depth--
	if object {
		return w.scalar(ObjectEnd, w.i+1)
	}
	return w.scalar(ArrayEnd, w.i+1)
}

// stop ends a walk over text that Check would have refused.
func (w *Walker) stop() Token {
	w.i = len(w.b)
	return Token{}
}
