package jsonx

// Value is one value inside a text that Check accepted.
type Value struct {
	// Kind is ObjectStart, ArrayStart, String, Number, True, False or Null; End without a value.
	Kind TokenKind
	// Raw is the whole text of the value without space around it; a string keeps its quotes. It is
	// a sub-slice of the text the value was read from and valid as long as that text is.
	Raw []byte
}

// ValueOf returns the one value of b, which must have passed Check, without the space around it.
// Kind is End when b begins no value. It reads the ends of b only and does not allocate.
func ValueOf(b []byte) Value {
	i, end := skipSpace(b, 0), len(b)
	for end > i && isSpace(b[end-1]) {
		end--
	}
	if i == end {
		return Value{}
	}
	kind := kindAt(b[i])
	if kind == End {
		return Value{}
	}
	return Value{Kind: kind, Raw: b[i:end:end]}
}

// kindAt returns what kind of value begins with c; End for none.
func kindAt(c byte) TokenKind {
	switch c {
	case '"':
		return String
	case '{':
		return ObjectStart
	case '[':
		return ArrayStart
	case 't':
		return True
	case 'f':
		return False
	case 'n':
		return Null
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return End
}

// Object iterates over the members of one object in their order, repeated keys included. What nests
// in a member is not read. Copying an Object forks the iteration. The zero Object has no members.
type Object struct {
	b []byte
	i int // behind the last member's value; len(b) once there are no more
}

// OpenObject returns an iterator over the members of raw, the text of an object (space around it
// allowed) that passed Check alone or in a larger text. Anything else has no members. It does not
// allocate.
func OpenObject(raw []byte) Object {
	return Object{raw, behindBracket(raw, '{')}
}

// Next returns the next member: key is the contents between the quotes, still escaped
// (AppendUnescaped undoes it). Both point into the text of OpenObject. After the last member ok
// stays false. It does not allocate.
func (o *Object) Next() (key []byte, v Value, ok bool) {
	b := o.b
	i := memberAt(b, o.i)
	if i >= len(b) || b[i] != '"' {
		o.i = len(b)
		return nil, Value{}, false
	}
	end := closingQuote(b, i+1)
	key = b[i+1 : end : end]
	// In nearly all text the colon is right behind the quote, and the value at most one space
	// later.
	if i = end + 1; i < len(b) && b[i] != ':' {
		i = skipSpace(b, i)
	}
	if i++; i < len(b) && b[i] <= ' ' {
		i = skipSpace(b, i)
	}
	v, o.i = valueAt(b, i)
	if v.Kind == End {
		return nil, Value{}, false
	}
	return key, v, true
}

// Array iterates over the elements of one array in their order. What nests in an element is stepped
// over, not read. It is a value: copying it forks the iteration. The zero Array has no elements.
type Array struct {
	b []byte
	i int // as Object.i
}

// OpenArray returns an iterator over the elements of raw, the text of an array (space around it
// allowed) that passed Check alone or in a larger text. Anything else has no elements. It does not
// allocate.
func OpenArray(raw []byte) Array {
	return Array{raw, behindBracket(raw, '[')}
}

// Next returns the next element, which points into the text given to OpenArray. After the last one
// ok is false, for ever. It does not allocate.
func (a *Array) Next() (v Value, ok bool) {
	v, a.i = valueAt(a.b, memberAt(a.b, a.i))
	return v, v.Kind != End
}

// behindBracket returns the offset behind the bracket that raw begins with, else len(raw).
func behindBracket(raw []byte, bracket byte) int {
	if i := skipSpace(raw, 0); i < len(raw) && raw[i] == bracket {
		return i + 1
	}
	return len(raw)
}

// memberAt returns the offset of the member or closing bracket after the opening bracket or value
// before i.
func memberAt(b []byte, i int) int {
	if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
		return skipSpace(b, i+1)
	}
	return i
}

// valueAt returns the value at i and the offset behind it; End and len(b) without one.
func valueAt(b []byte, i int) (v Value, next int) {
	if i >= len(b) {
		return Value{}, len(b)
	}
	kind := kindAt(b[i])
	switch kind {
	case String:
		next = closingQuote(b, i+1) + 1
	case ObjectStart, ArrayStart:
		next = behindContainer(b, i+1)
	case True, Null:
		next = i + len("true")
	case False:
		next = i + len("false")
	case Number:
		next = numberEnd(b, i)
	default:
		return Value{}, len(b)
	}
	next = min(next, len(b))
	return Value{Kind: kind, Raw: b[i:next:next]}, next
}
