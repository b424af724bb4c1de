package jsonx

import (
	"bytes"
	"slices"
	"strconv"
)

// Canonical writes JSON in the one form that equal values share (threads §4.3): names sorted by
// their bytes, no space, the fewest escapes, numbers as exact decimals. The zero Canonical is
// ready. It keeps memory for its next value, and is not safe for concurrent use.
type Canonical struct {
	buf     []byte // what Write collects
	write   func([]byte)
	members []canonicalMember
	text    []byte // of names with escapes
}

// canonicalMember is a member of an object that is being written.
type canonicalMember struct {
	name     []byte
	from, to int // of a name in text, where name is nil
	value    Value
}

// Sizes of memory: what is collected before it is written, and what is kept.
const (
	canonicalBlock = 1 << 10
	keptMembers    = 1 << 10
)

// Begin has what follows go to write, in pieces that are lent.
func (c *Canonical) Begin(write func([]byte)) {
	c.buf, c.write = c.buf[:0], write
	if cap(c.members) > keptMembers {
		c.members = nil
	}
	if cap(c.text) > keptStrings {
		c.text = nil
	}
}

// End writes what is left.
func (c *Canonical) End() {
	c.write(c.buf)
	c.buf, c.write = c.buf[:0], nil
}

func (c *Canonical) room() {
	if len(c.buf) > canonicalBlock {
		c.write(c.buf)
		c.buf = c.buf[:0]
	}
}

// Literal writes text as it is: punctuation and names of the caller.
func (c *Canonical) Literal(text string) { c.buf = append(c.buf, text...) }

// String writes a string, given as the contents between its quotes in a text that was checked.
func (c *Canonical) String(raw []byte) {
	c.buf = append(c.buf, '"')
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			i = len(raw)
		}
		if c.plain(raw[:i]); i == len(raw) {
			break
		}
		n := 2
		if raw[i+1] == 'u' {
			if n = 6; len(raw) >= i+12 && raw[i+6] == '\\' && raw[i+7] == 'u' {
				n = 12
				if u := hex4(raw[i+2:]); u < 0xd800 || u >= 0xdc00 {
					n = 6
				}
			}
		}
		c.escape(raw[i : i+n])
		raw = raw[i+n:]
	}
	c.buf = append(c.buf, '"')
}

// plain writes text without escapes and without what needs them.
func (c *Canonical) plain(text []byte) {
	for len(text) > canonicalBlock {
		c.buf = append(c.buf, text[:canonicalBlock]...)
		text = text[canonicalBlock:]
		c.room()
	}
	c.buf = append(c.buf, text...)
	c.room()
}

// escape writes the meaning of one escape, or of a surrogate pair.
func (c *Canonical) escape(raw []byte) {
	start := len(c.buf)
	c.buf = AppendUnescaped(c.buf, raw)
	if b := c.buf[start]; len(c.buf) == start+1 && (b < ' ' || b == '"' || b == '\\') {
		c.buf = appendCanonicalEscape(c.buf[:start], b)
	}
}

func appendCanonicalEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
}

// Value writes a value, given as a text that passed the Scan of a Strict.
func (c *Canonical) Value(raw []byte) { c.value(ValueOf(raw)) }

func (c *Canonical) value(v Value) {
	switch v.Kind {
	case String:
		c.String(v.Raw[1 : len(v.Raw)-1])
	case Number:
		c.buf = appendCanonicalNumber(c.buf, v.Raw)
		c.room()
	case ObjectStart:
		c.object(v.Raw)
	case ArrayStart:
		c.buf = append(c.buf, '[')
		list := OpenArray(v.Raw)
		for i := 0; ; i++ {
			e, ok := list.Next()
			if !ok {
				break
			}
			if i > 0 {
				c.buf = append(c.buf, ',')
			}
			c.value(e)
		}
		c.buf = append(c.buf, ']')
	default:
		c.buf = append(c.buf, v.Raw...)
	}
}

func (c *Canonical) object(raw []byte) {
	start, text := len(c.members), len(c.text)
	for o := OpenObject(raw); ; {
		name, v, ok := o.Next()
		if !ok {
			break
		}
		m := canonicalMember{name: name, value: v}
		if bytes.IndexByte(name, '\\') >= 0 {
			m.name, m.from = nil, len(c.text)
			c.text = AppendUnescaped(c.text, name)
			m.to = len(c.text)
		}
		c.members = append(c.members, m)
	}
	members := c.members[start:]
	slices.SortFunc(members, func(a, b canonicalMember) int { return bytes.Compare(c.name(&a), c.name(&b)) })
	c.buf = append(c.buf, '{')
	for i := range members {
		m := c.members[start+i]
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.quoted(c.name(&m))
		c.buf = append(c.buf, ':')
		c.value(m.value)
	}
	c.buf = append(c.buf, '}')
	c.members, c.text = c.members[:start], c.text[:text]
}

func (c *Canonical) name(m *canonicalMember) []byte {
	if m.name == nil {
		return c.text[m.from:m.to]
	}
	return m.name
}

// quoted writes a string, given by its meaning.
func (c *Canonical) quoted(text []byte) {
	c.buf = append(c.buf, '"')
	for _, b := range text {
		if b < ' ' || b == '"' || b == '\\' {
			c.buf = appendCanonicalEscape(c.buf, b)
		} else {
			c.buf = append(c.buf, b)
		}
	}
	c.buf = append(c.buf, '"')
	c.room()
}

// Quoted writes a string, given by its meaning.
func (c *Canonical) Quoted(text []byte) { c.quoted(text) }

// appendCanonicalNumber appends a number as digits without zeros at its ends and an exponent, which
// is left out where it is 0.
func appendCanonicalNumber(dst, raw []byte) []byte {
	mantissa, exponent := splitExponent(raw)
	start := len(dst)
	if mantissa[0] == '-' {
		dst, mantissa = append(dst, '-'), mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	digits := len(dst)
	dst = append(append(dst, whole...), fraction...)
	exponent -= len(fraction)
	end := len(dst)
	for end > digits && dst[end-1] == '0' {
		end--
		exponent++
	}
	first := digits
	for first < end && dst[first] == '0' {
		first++
	}
	if first == end {
		return append(dst[:start], '0')
	}
	n := copy(dst[digits:], dst[first:end])
	dst = dst[:digits+n]
	if exponent == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, 'e'), int64(exponent), 10)
}
