package jsonx

import (
	"bytes"
	"slices"
)

// Kinds of StrictProblem beyond those of Problem.
const (
	NotObject     Kind = TooDeep + 1 + iota // a valid text that is not an object
	DuplicateKey                            // an object has a name twice, however it is spelled
	ForbiddenKey                            // a name is __proto__
	LoneSurrogate                           // an escape of half a character
	LongNumber                              // a number literal is too long, or its exponent too large
)

// Bounds of a strict text (threads §3.2).
const (
	maxNumberBytes    = 64
	maxNumberExponent = 400
	forbiddenKey      = "__proto__"
)

// Bounds of the memory that a Strict keeps.
const (
	keptKeys    = 1 << 10
	keptStrings = 16 << 10
	// fewKeys is how many names are compared one with each other; more are sorted.
	fewKeys = 12
)

// StrictProblem is what Scan of a Strict found. Its zero value means that nothing is wrong.
type StrictProblem struct {
	Problem
	key []byte // of DuplicateKey; valid until the next scan
}

// Text returns the human text of p. It allocates.
func (p *StrictProblem) Text() string {
	switch p.Kind {
	case NotObject:
		return "it is not an object"
	case DuplicateKey:
		return "it has the key " + string(AppendString(nil, Clip(p.key, 64))) + " twice in one object"
	case ForbiddenKey:
		return "it has a key " + forbiddenKey
	case LoneSurrogate:
		return "a string has half a surrogate pair"
	case LongNumber:
		return "a number is too long"
	}
	return p.String()
}

// Strict scans texts in which no reader can see something else than another one: no object has a
// name twice. The zero Strict is ready. It keeps memory for its next scan, and is not safe for
// concurrent use.
type Strict struct {
	keys  []keySpan
	text  []byte        // of names with escapes
	opens [MaxDepth]int // where the names of each open object begin in keys; -1: an array
}

// keySpan is a name: bytes of the scanned text, or of Strict.text.
type keySpan struct {
	from, to int
	escaped  bool
}

// Scan is Names.Scan for an object without ambiguity: names are unique in each object, none is
// __proto__, no string has half a surrogate pair, and numbers have at most maxNumberBytes bytes and
// an exponent of at most maxNumberExponent. It takes time in proportion to the text, but for names:
// many names in one object are sorted. It does not allocate for objects of moderate size.
func (s *Strict) Scan(b []byte, maxDepth int, names *Names, out []Member) StrictProblem {
	switch r, which := names.Scan(b, maxDepth, out); r {
	case ScanInvalid:
		return StrictProblem{Problem: Check(b, maxDepth)}
	case ScanNotObject, ScanNull:
		return StrictProblem{Problem: Problem{Kind: NotObject}}
	case ScanDuplicate:
		return StrictProblem{Problem: Problem{Kind: DuplicateKey}, key: []byte(names.Name(which))}
	}
	p := s.walk(b)
	if cap(s.keys) > keptKeys {
		s.keys = nil
	}
	if cap(s.text) > keptStrings {
		s.text = nil
	}
	return p
}

// walk looks through a text that was checked.
func (s *Strict) walk(b []byte) StrictProblem {
	s.keys, s.text = s.keys[:0], s.text[:0]
	depth := 0
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end := closingQuote(b, i+1)
			escaped := bytes.IndexByte(b[i+1:end], '\\') >= 0
			if escaped && !paired(b[i+1:end]) {
				return StrictProblem{Problem: Problem{Kind: LoneSurrogate, Offset: i}}
			}
			next := end + 1
			if next < len(b) && b[next] <= ' ' {
				next = skipSpace(b, next)
			}
			if next < len(b) && b[next] == ':' {
				if s.key(b, i+1, end, escaped) {
					return StrictProblem{Problem: Problem{Kind: ForbiddenKey, Offset: i}}
				}
				next++
			}
			i = next
		case c == '{':
			s.opens[depth] = len(s.keys)
			depth++
			i++
		case c == '[':
			s.opens[depth] = -1
			depth++
			i++
		case c == '}':
			depth--
			if twice, ok := s.unique(b, s.opens[depth]); !ok {
				return StrictProblem{Problem: Problem{Kind: DuplicateKey, Offset: i}, key: twice}
			}
			s.keys = s.keys[:s.opens[depth]]
			i++
		case c == ']':
			depth--
			i++
		case c == '-' || c-'0' <= 9:
			end := numberEnd(b, i)
			if long(b[i:end]) {
				return StrictProblem{Problem: Problem{Kind: LongNumber, Offset: i}}
			}
			i = end
		default:
			i++
		}
	}
	return StrictProblem{}
}

// paired reports that each escaped surrogate of a string has its other half.
func paired(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return true
		}
		if raw[i+1] != 'u' {
			raw = raw[i+2:]
			continue
		}
		u := hex4(raw[i+2:])
		raw = raw[i+6:]
		switch {
		case u >= 0xdc00 && u < 0xe000:
			return false
		case u >= 0xd800 && u < 0xdc00:
			if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
				return false
			}
			if low := hex4(raw[2:]); low < 0xdc00 || low >= 0xe000 {
				return false
			}
			raw = raw[6:]
		}
	}
}

func hex4(b []byte) (v int32) {
	for _, c := range b[:4] {
		v = v<<4 | hexValue(c)
	}
	return v
}

// key notes a name. It reports whether that is forbidden.
func (s *Strict) key(b []byte, from, to int, escaped bool) (forbidden bool) {
	if escaped {
		start := len(s.text)
		s.text = AppendUnescaped(s.text, b[from:to])
		from, to = start, len(s.text)
	}
	k := keySpan{from, to, escaped}
	s.keys = append(s.keys, k)
	return to-from == len(forbiddenKey) && string(s.name(b, k)) == forbiddenKey
}

func (s *Strict) name(b []byte, k keySpan) []byte {
	if k.escaped {
		return s.text[k.from:k.to]
	}
	return b[k.from:k.to]
}

// unique reports that the names from a position on differ, or returns one that is there twice.
func (s *Strict) unique(b []byte, from int) (twice []byte, ok bool) {
	keys := s.keys[from:]
	if len(keys) <= fewKeys {
		for i := range keys {
			name := s.name(b, keys[i])
			for j := range keys[:i] {
				if bytes.Equal(s.name(b, keys[j]), name) {
					return name, false
				}
			}
		}
		return nil, true
	}
	slices.SortFunc(keys, func(x, y keySpan) int { return bytes.Compare(s.name(b, x), s.name(b, y)) })
	for i := 1; i < len(keys); i++ {
		if name := s.name(b, keys[i]); bytes.Equal(s.name(b, keys[i-1]), name) {
			return name, false
		}
	}
	return nil, true
}

// long reports whether a number literal is beyond the bounds.
func long(raw []byte) bool {
	if len(raw) > maxNumberBytes {
		return true
	}
	_, exponent := splitExponent(raw)
	return exponent > maxNumberExponent || exponent < -maxNumberExponent
}

// splitExponent returns what is in front of the exponent of a number literal, and the exponent,
// which is exact below 10^6.
func splitExponent(raw []byte) (mantissa []byte, exponent int) {
	i := bytes.IndexAny(raw, "eE")
	if i < 0 {
		return raw, 0
	}
	negative := false
	for _, c := range raw[i+1:] {
		switch {
		case c == '-':
			negative = true
		case c != '+' && exponent < 1e6:
			exponent = exponent*10 + int(c-'0')
		}
	}
	if negative {
		exponent = -exponent
	}
	return raw[:i], exponent
}
