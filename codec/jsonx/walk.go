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
	// count each time. After Start instead of Reset it is always 0.
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
	object  bool     // the innermost open container is one
	wantKey bool     // the next string is a member's name
	opened  int      // containers begun so far: the index into counts
	counts  []uint32 // members of each container, in order of their opening brackets
	open    []uint32 // scratch of countMembers: indexes of the open containers, at most MaxDepth
}

// Reset starts a walk over b, which must have passed Check. The Walker reads b until the walk ends; Reset(nil) lets go of it.
// It reads b once to count members, so that a whole walk costs time linear in len(b) however deep it nests. It allocates only
// when b has more containers than any text before.
func (w *Walker) Reset(b []byte) {
	w.Start(b)
	if cap(w.counts) > maxKeptCounts {
		w.counts = nil
	}
	w.countMembers()
}

// Start is Reset for a walk that does without member counts: b is read only once and nothing is allocated, ever.
func (w *Walker) Start(b []byte) {
	w.b, w.i, w.nest.depth, w.object, w.wantKey, w.opened, w.counts = b, 0, 0, false, false, 0, w.counts[:0]
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

// Next returns the next token, and a token of kind End for ever once the text is over. It does not allocate.
func (w *Walker) Next() (t Token) {
	t.Kind, t.Raw = w.Step()
	if (t.Kind == ObjectStart || t.Kind == ArrayStart) && w.opened <= len(w.counts) {
		t.Count = int(w.counts[w.opened-1])
	}
	return t
}

// Step is Next for callers that need no member count: it returns the Kind and Raw of the next token, which travel in registers.
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
	w.opened++
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
