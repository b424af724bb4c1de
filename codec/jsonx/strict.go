package jsonx

// What Strict refuses beside broken syntax (threads §3.2).
const (
	forbidden   = "__proto__"
	forbidHead  = 0x5f6f746f72705f5f // its head
	maxLiteral  = 64                 // bytes of a number
	maxExponent = 400                // magnitude of the exponent as it is spelled
)

// What a Strict keeps between texts, at most. The room for keys grows in steps, so that twice as
// many are let pass.
const (
	strictKeeps  = 1024            // keys
	strictArena  = 16 << 10        // bytes of escaped keys
	strictPlaces = 2 * strictKeeps // places of its table
)

// Strict checks documents whose every reader must understand the same: beside what Check requires,
// no object has a key twice, however it is spelled, no key is __proto__, no string has an escape of
// half a character, no number is longer than 64 bytes or has an exponent beyond ±400. The cost is
// linear in the length of the text, for any text.
//
// A Strict is scratch memory: it keeps nothing of a text, and the room for strictKeeps keys. Once
// warm it allocates only for texts whose open objects have more. The zero Strict is ready. It is
// for one goroutine.
type Strict struct {
	// Loose has the key __proto__ and numbers of any spelling pass, and reports any other problem
	// before that of a text that is no object.
	Loose bool

	keyring
	distinct
	problem Problem // the first that is no fault of syntax
	nest    nest
	limit   int

	// keys are those of the open objects, outermost first. Before the keys of each stands a mark,
	// whose at is the base of the object around it.
	keys []key
	base int // where the keys of the innermost open object begin

	names *Names // the members to pick, nil for none
	out   []Member
	known int     // which of the names the root's member at hand has, -1 for another
	value int     // where the value of that member begins
	esc   escapes // of the last string value
}

// Check checks that text is exactly one JSON value, any one, that keeps the rules of Strict, with
// at most maxDepth open containers. A fault of syntax is reported first; otherwise the first broken
// rule that is found, where a repeated key is found at the end of its object.
func (s *Strict) Check(text []byte, maxDepth int) Problem {
	return s.check(nil, text, maxDepth, nil)
}

// Scan does the same for a text that must be an object, and in the same pass picks the members
// whose names n knows, as Names.Scan does: out must hold n.Len() members, and all are overwritten.
// With a fault of syntax all are absent. With another problem each has its first value, so that an
// answer can repeat what the request gave.
func (s *Strict) Scan(n *Names, text []byte, maxDepth int, out []Member) Problem {
	out = clearMembers(out[:n.Len()])
	p := s.check(n, text, maxDepth, out)
	if p.Kind != Fine && s.problem.Kind == Fine {
		clear(out)
	}
	return p
}

// check returns the fault of syntax, else the problem that was found, which is in s.problem too.
func (s *Strict) check(n *Names, text []byte, maxDepth int, out []Member) Problem {
	s.start(text)
	s.problem, s.nest.depth, s.limit = Problem{}, 0, min(max(maxDepth, 0), MaxDepth)
	s.keys, s.base, s.names, s.out, s.known = s.keys[:0], 0, n, out, -1
	i := skipSpace(text, 0)
	if n != nil && i < len(text) && text[i] != '{' {
		s.refuse(NotObject, i)
	}
	i, kind := s.run(text, i)
	if kind == Fine {
		i, kind = textEnd(text, i)
	}
	s.release()
	if kind != Fine {
		s.problem = Problem{}
		return problemAt(text, i, kind, s.limit)
	}
	return s.problem
}

// release forgets the text, and scratch memory that is too large to keep.
func (s *Strict) release() {
	s.text, s.names, s.out = nil, nil, nil
	if cap(s.keys) > 2*strictKeeps {
		s.keys = nil
	}
	if cap(s.plain) > strictArena {
		s.plain = nil
	}
	if cap(s.places) > strictPlaces {
		s.places = nil
	}
}

// refuse records a problem that is no fault of syntax, unless there is one already.
func (s *Strict) refuse(kind Kind, offset int) {
	if s.Loose && (kind == ForbiddenKey || kind == LongNumber) {
		return
	}
	if s.problem.Kind == Fine || s.Loose && s.problem.Kind == NotObject {
		s.problem = Problem{Kind: kind, Offset: offset, detail: int32(s.limit)}
	}
}

// run checks the one value at i and returns the offset behind it, as checker.run does.
func (s *Strict) run(b []byte, i int) (next int, kind Kind) {
	for {
		c := byte(0)
		if i < len(b) {
			c = b[i]
		}
		switch c {
		case '"':
			start := i + 1
			if i, s.esc, kind = scanString(b, start); s.esc&unicodeEscape != 0 && kind == Fine {
				s.halves(start, i-1)
			}
		case '{', '[':
			empty := false
			if i, empty, kind = s.open(b, i); kind == Fine && !empty {
				continue
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i, kind = s.number(b, i)
		default:
			i, kind = checkScalar(b, i)
		}
		if kind != Fine {
			return i, kind
		}
		if i, kind = s.after(b, i); s.nest.depth == 0 || kind != Fine {
			return i, kind
		}
	}
}

// open checks the bracket at i and what follows it up to the first value, or up to the end of an
// empty container.
func (s *Strict) open(b []byte, i int) (next int, empty bool, kind Kind) {
	if s.nest.depth >= s.limit {
		if s.refuse(TooDeep, i); s.nest.depth >= MaxDepth {
			return i, false, TooDeep
		}
	}
	object := b[i] == '{'
	if i = skipSpace(b, i+1); i < len(b) && b[i] == closer(object) {
		return i + 1, true, Fine
	}
	s.nest.push(object)
	if object {
		s.keys = append(s.keys, key{at: s.base})
		s.base = len(s.keys)
		i, kind = s.name(b, i)
	}
	return i, false, kind
}

// after closes every container that ends at i and moves to the next value, if one is still open.
func (s *Strict) after(b []byte, i int) (next int, kind Kind) {
	for s.nest.depth > 0 {
		if s.nest.depth == 1 && s.known >= 0 {
			s.out[s.known].set(b, s.value, i, s.esc != 0 && b[s.value] == '"')
		}
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		object := s.nest.inObject()
		switch {
		case i >= len(b):
			return i, UnexpectedEnd
		case b[i] == ',':
			if i++; i < len(b) && b[i] <= ' ' {
				i = skipSpace(b, i)
			}
			if object {
				i, kind = s.name(b, i)
			}
			return i, kind
		case b[i] != closer(object):
			return i, UnexpectedChar
		}
		if s.nest.depth--; object {
			s.close()
		}
		i++
	}
	return i, Fine
}

// close compares the keys of the innermost open object, which ends.
func (s *Strict) close() {
	if k := s.repeated(&s.keyring, s.keys[s.base:]); k >= 0 {
		s.refuse(DuplicateKey, s.keys[s.base+k].at-1)
	}
	mark := s.base - 1
	s.base = s.keys[mark].at
	s.keys = s.keys[:mark]
}

// name checks the key at i and its colon, and returns the offset of the value.
func (s *Strict) name(b []byte, i int) (next int, kind Kind) {
	if i >= len(b) || b[i] != '"' {
		return fault(b, i)
	}
	next, esc, kind := scanString(b, i+1)
	if kind != Fine {
		return next, kind
	}
	if esc&unicodeEscape != 0 {
		s.halves(i+1, next-1)
	}
	s.keys = append(s.keys, key{})
	k := &s.keys[len(s.keys)-1]
	s.set(k, i+1, next-1, esc != 0)
	if k.head == forbidHead && string(s.meaning(k)) == forbidden {
		s.refuse(ForbiddenKey, i)
	}
	if next+1 < len(b) && b[next] == ':' && b[next+1] > ' ' { // nearly always: no call
		next++
	} else {
		next, kind = valueBehind(b, next)
	}
	if s.nest.depth == 1 && s.names != nil {
		m := s.meaning(k)
		s.value, s.known = next, s.names.findHead(k.head, m, 0, len(m))
	}
	return next, kind
}

// number checks the number at i and how it is spelled.
func (s *Strict) number(b []byte, i int) (next int, kind Kind) {
	exponent := 0
	next, kind = scanMantissa(b, i)
	if letter := next; kind == Fine && next < len(b) && b[next]|0x20 == 'e' {
		if next, kind = scanExponent(b, next+1); kind == Fine {
			exponent, _ = parseExponent(b[letter:next])
		}
	}
	if next-i > maxLiteral || exponent > maxExponent || exponent < -maxExponent {
		s.refuse(LongNumber, i)
	}
	return next, kind
}

// halves looks for escapes of half a character in a string, whose contents are text[from:to].
func (s *Strict) halves(from, to int) {
	if k := loneSurrogate(s.text[from:to]); k >= 0 {
		s.refuse(LoneSurrogate, from+k)
	}
}
