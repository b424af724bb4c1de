package jsonx

// Check reports whether b is exactly one JSON value by RFC 8259: any top-level value, whitespace around it allowed, valid
// UTF-8, at most maxDepth open containers (the outermost is level one; more than MaxDepth acts as MaxDepth, below one allows
// only scalars). An empty text is not JSON (kernel-ipc D7). Escaped lone surrogates are allowed, as the grammar allows them.
//
// The Problem names the first fault. Check neither allocates nor keeps b.
func Check(b []byte, maxDepth int) Problem {
	c := checker{b: b, maxDepth: min(max(maxDepth, 0), MaxDepth)}
	i, kind := c.run()
	switch kind {
	case Fine:
		return Problem{}
	case UnexpectedEnd, InvalidUTF8:
		return Problem{Kind: kind, Offset: i}
	case TooDeep:
		return Problem{Kind: kind, Offset: i, detail: int32(c.maxDepth)}
	}
	return Problem{Kind: kind, Offset: i, detail: int32(b[i])}
}

type checker struct {
	b        []byte
	maxDepth int
	nest     nest
}

// run alternates between a value and what may follow one until the text or the value ends.
func (c *checker) run() (int, Kind) {
	i := skipSpace(c.b, 0)
	for {
		var kind Kind
		var opened bool
		if i, opened, kind = c.value(i); kind != Fine {
			return i, kind
		}
		if opened {
			continue
		}
		// The next element of an array, the commonest successor by far, without the detour.
		if i < len(c.b) && c.b[i] == ',' && c.nest.depth > 0 && !c.nest.inObject() {
			i = skipSpace(c.b, i+1)
			continue
		}
		var done bool
		if i, done, kind = c.after(i); done || kind != Fine {
			return i, kind
		}
	}
}

// value checks the scalar or the container opening at i. After a non-empty opening it returns opened and the offset of the
// first member's value; otherwise the offset behind the value.
func (c *checker) value(i int) (next int, opened bool, kind Kind) {
	if i >= len(c.b) {
		return len(c.b), false, UnexpectedEnd
	}
	switch ch := c.b[i]; ch {
	case '"':
		next, kind = scanString(c.b, i+1)
	case '{', '[':
		return c.open(i, ch == '{')
	case 't':
		next, kind = scanLiteral(c.b, i, "true")
	case 'f':
		next, kind = scanLiteral(c.b, i, "false")
	case 'n':
		next, kind = scanLiteral(c.b, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		next, kind = scanNumber(c.b, i)
	default:
		next, kind = i, UnexpectedChar
	}
	return next, false, kind
}

// open enters the container whose bracket is at i, or passes over it when it is empty.
func (c *checker) open(i int, object bool) (next int, opened bool, kind Kind) {
	if c.nest.depth >= c.maxDepth {
		return i, false, TooDeep
	}
	i = skipSpace(c.b, i+1)
	if i < len(c.b) && c.b[i] == closer(object) {
		return i + 1, false, Fine
	}
	c.nest.push(object)
	if object {
		i, kind = c.key(i)
	}
	return i, true, kind
}

// key checks the member name at i and its colon and returns the offset of the member's value.
func (c *checker) key(i int) (int, Kind) {
	if i >= len(c.b) || c.b[i] != '"' {
		return fault(c.b, i)
	}
	i, kind := scanString(c.b, i+1)
	if kind != Fine {
		return i, kind
	}
	i = skipSpace(c.b, i)
	if i >= len(c.b) || c.b[i] != ':' {
		return fault(c.b, i)
	}
	return skipSpace(c.b, i+1), Fine
}

// after closes every container that ends at i and moves to the next member's value; done means that the whole text is read.
func (c *checker) after(i int) (next int, done bool, kind Kind) {
	for c.nest.depth > 0 {
		object := c.nest.inObject()
		if i = skipSpace(c.b, i); i >= len(c.b) {
			return len(c.b), false, UnexpectedEnd
		}
		switch c.b[i] {
		case closer(object):
			c.nest.depth--
			i++
		case ',':
			i = skipSpace(c.b, i+1)
			if object {
				i, kind = c.key(i)
			}
			return i, false, kind
		default:
			return i, false, UnexpectedChar
		}
	}
	if i = skipSpace(c.b, i); i < len(c.b) {
		return i, false, ExtraData
	}
	return i, true, Fine
}

func closer(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}
