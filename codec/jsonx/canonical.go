package jsonx

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
	"slices"
)

const (
	// canonicalKeeps is up to how many bytes of a value a Canonical keeps the room for all that it
	// notes about it, between values. A member has at least 5 bytes, an object 2.
	canonicalKeeps = 4 << 10

	canonicalBuffer = 4 << 10 // bytes that are collected for one write
	canonicalPiece  = 512     // bytes of a string that are copied at once; six times that must fit
)

// Canonical writes JSON in one form, which is the same for all texts of one meaning, into a hash
// (threads §4.3): the keys of every object in the order of their UTF-8 bytes, no space, in strings
// only the quote, the backslash and the control characters escaped, those in the short form if
// there is one and as \u00xx otherwise, and numbers as digits without leading and trailing zeros
// and, unless it is 0, an exponent (100 is 1e2, 1.50 is 15e-1, -0 is 0).
//
// The form is never in memory as a whole. A Canonical is scratch memory: it notes where the members
// of a value are, and keeps the room for that up to canonicalKeeps. The zero Canonical is ready
// for Start. It is for one goroutine.
type Canonical struct {
	keyring
	w   io.Writer
	out []byte // what w does not have yet

	walker  Walker
	members []member // of the closed objects; those of one object side by side, ordered
	open    []member // of the open objects, outermost first
	objects []object // in the order in which they begin
	frames  []frame  // the containers that are being written, outermost first

	escape [8]byte // the meaning of one escape
}

// member is a member of an object.
type member struct {
	key
	value   int // its value or what separates it from its key
	objects int // how many objects begin before its value
}

// object is an object of the text.
type object struct {
	from, to int // its members; in Canonical.open as long as it is open, and to is unset
	parent   int // the object around it
	end      int // behind its bracket
	objects  int // how many objects begin before its end
}

// frame is an open container of the output.
type frame struct {
	object int // -1 for an array
	count  int // of what is written of it
}

// Start begins an output into w, which must not fail: a hash does not.
func (c *Canonical) Start(w io.Writer) {
	if c.w, c.out = w, c.out[:0]; c.out == nil {
		c.out = make([]byte, 0, canonicalBuffer)
	}
}

// End writes what is left and forgets w.
func (c *Canonical) End() {
	c.w.Write(c.out)
	c.w = nil
}

// Literal writes text, which has the form already.
func (c *Canonical) Literal(text string) { c.verbatim(lend(text)) }

// verbatim is Literal for bytes.
func (c *Canonical) verbatim(text []byte) {
	for len(text) > 0 {
		c.room(1)
		n := min(len(text), cap(c.out)-len(c.out))
		c.out, text = append(c.out, text[:n]...), text[n:]
	}
}

// put writes one byte.
func (c *Canonical) put(b byte) {
	c.room(1)
	c.out = append(c.out, b)
}

// Text writes a string: text is its meaning or, if escaped, the contents of a checked string.
func (c *Canonical) Text(text []byte, escaped bool) {
	c.put('"')
	for escaped {
		n := bytes.IndexByte(text, '\\')
		if n < 0 {
			break
		}
		c.unescaped(text[:n])
		var meaning []byte
		meaning, text = appendEscape(c.escape[:0], text[n:])
		c.unescaped(meaning)
	}
	c.unescaped(text)
	c.put('"')
}

// unescaped writes a part of a string by its meaning.
func (c *Canonical) unescaped(text []byte) {
	for len(text) > 0 {
		piece := Clip(text, canonicalPiece)
		if len(piece) == 0 {
			piece = text[:canonicalPiece] // not UTF-8
		}
		c.room(6 * len(piece))
		c.out, text = appendText(c.out, piece), text[len(piece):]
	}
}

// room makes room for n bytes in out.
func (c *Canonical) room(n int) {
	if cap(c.out)-len(c.out) < n {
		c.w.Write(c.out)
		c.out = c.out[:0]
	}
}

// Value writes the one value of text, which passed Strict: of exponents beyond ±farExponent, which
// Strict refuses, many have one form.
func (c *Canonical) Value(text []byte) {
	c.start(text)
	c.index()
	c.write()
	c.release()
}

// release forgets the text, and scratch memory that is too large to keep.
func (c *Canonical) release() {
	c.text = nil
	c.walker.b = nil
	if cap(c.members) > canonicalKeeps/4 {
		c.members = nil
	}
	if cap(c.open) > canonicalKeeps/4 {
		c.open = nil
	}
	if cap(c.objects) > canonicalKeeps/2 {
		c.objects = nil
	}
	if cap(c.plain) > canonicalKeeps {
		c.plain = nil
	}
}

// index notes the objects of the text and their members.
func (c *Canonical) index() {
	c.members, c.open, c.objects = c.members[:0], c.open[:0], c.objects[:0]
	w, at := &c.walker, -1 // at: the innermost open object
	w.Start(c.text)
	for {
		switch kind, raw := w.Step(); kind {
		case End:
			return
		case ObjectStart:
			c.objects = append(c.objects, object{from: len(c.open), to: len(c.open), parent: at, end: len(c.text)})
			at = len(c.objects) - 1
		case Key:
			c.open = append(c.open, member{})
			m := &c.open[len(c.open)-1]
			m.value, m.objects = w.i, len(c.objects)
			c.set(&m.key, w.i-1-len(raw), w.i-1, bytes.IndexByte(raw, '\\') >= 0)
		case ObjectEnd:
			o := &c.objects[at]
			at = o.parent
			c.closeObject(o)
		}
	}
}

// closeObject orders the members of the innermost open object, which ends.
func (c *Canonical) closeObject(o *object) {
	own := c.open[o.from:]
	slices.SortFunc(own, func(a, b member) int { return c.compare(&a.key, &b.key) })
	c.open = c.open[:o.from]
	o.from = len(c.members)
	c.members = append(c.members, own...)
	o.to, o.end, o.objects = len(c.members), c.walker.i, len(c.objects)
}

// write writes the text by what index noted. Only text that was not checked makes it end early.
func (c *Canonical) write() {
	b := c.text
	c.frames = c.frames[:0]
	for i, objects, more := 0, 0, true; more; { // objects: how many begin before i
		if i = skipSeparators(b, i); i >= len(b) {
			return
		}
		switch b[i] {
		case '{':
			if objects == len(c.objects) || len(c.frames) == MaxDepth {
				return
			}
			c.put('{')
			c.frames = append(c.frames, frame{object: objects})
		case '[':
			if len(c.frames) == MaxDepth {
				return
			}
			c.put('[')
			c.frames = append(c.frames, frame{object: -1})
			i++
		case '}', ']':
			return
		default:
			i = c.scalar(i)
		}
		i, objects, more = c.next(i, objects)
	}
}

// next closes every container that ends, writes what stands before the next value, and returns
// where that is.
func (c *Canonical) next(i, objects int) (value, before int, more bool) {
	for len(c.frames) > 0 {
		f := &c.frames[len(c.frames)-1]
		if f.object >= 0 {
			o := &c.objects[f.object]
			if k := o.from + f.count; k < o.to {
				m := &c.members[k]
				c.comma(f)
				c.name(&m.key)
				return m.value, m.objects, true
			}
			c.put('}')
			i, objects = o.end, o.objects
		} else {
			if i = skipSeparators(c.text, i); i >= len(c.text) || c.text[i] != ']' {
				c.comma(f)
				return i, objects, true
			}
			c.put(']')
			i++
		}
		c.frames = c.frames[:len(c.frames)-1]
	}
	return i, objects, false
}

// name writes a key. One without escapes is as it must be.
func (c *Canonical) name(k *key) {
	if k.plain < 0 {
		c.verbatim(c.text[k.at-1 : k.at+k.size+1])
	} else {
		c.Text(c.meaning(k), false)
	}
	c.put(':')
}

// comma writes one unless what follows is the first.
func (c *Canonical) comma(f *frame) {
	if f.count > 0 {
		c.put(',')
	}
	f.count++
}

// skipSeparators returns the offset of the token at or after i.
func skipSeparators(b []byte, i int) int {
	for i < len(b) && separator(b[i]) {
		i++
	}
	return i
}

// scalar writes the string, number or literal at i and returns the offset behind it.
func (c *Canonical) scalar(i int) int {
	v, next := valueAt(c.text, i)
	switch {
	case v.Kind == Number:
		c.number(v.Raw)
	case v.Kind == String && bytes.IndexByte(v.Raw, '\\') >= 0:
		c.Text(v.Raw[1:len(v.Raw)-1], true)
	default:
		c.verbatim(v.Raw) // as it must be
	}
	return next
}

// lows are the bits below the mark of each byte.
const lows = ones * 0x7f

// Compact removes the space between the tokens of checked text in place and returns the front of b.
// Literals and strings keep their spelling. It does not allocate.
//
// It does not read tokens: quotes determine which bytes are in strings.
func Compact(b []byte) []byte {
	w, i, quoted := 0, 0, uint64(0) // quoted: all bits set inside a string
	for len(b)-i >= 8 {
		word := binary.LittleEndian.Uint64(b[i:])
		quotes, slashes := markByte(word, '"'), markByte(word, '\\')
		if slashes != 0 {
			w, i, quoted = compactTo(b, w, i, i+bits.TrailingZeros64(slashes)>>3+1, quoted)
			continue
		}
		within := quotes*ones ^ quoted // bit 7 of each byte: the parity of the quotes up to there
		spaces := ^((word & lows) + ones*(0x7f-' ') | word) & highs &^ within
		size := 8 - bits.OnesCount64(spaces)
		for spaces != 0 {
			below := uint64(1)<<(bits.Len64(spaces)-8) - 1
			word = word&below | word>>8&^below
			spaces &= below
		}
		binary.LittleEndian.PutUint64(b[w:], word)
		w, i, quoted = w+size, i+8, uint64(int64(within)>>63)
	}
	w, _, _ = compactTo(b, w, i, len(b), quoted)
	return b[:w]
}

// compactTo does the same byte by byte for b[i:end] and what a backslash there escapes, into b[w:].
func compactTo(b []byte, w, i, end int, quoted uint64) (newW, newI int, nowQuoted uint64) {
	for ; i < end; i++ {
		c := b[i]
		switch {
		case c == '"':
			quoted = ^quoted
		case c == '\\' && i+1 < len(b):
			b[w] = c
			w++
			i++
			c = b[i]
		case c <= ' ' && quoted == 0:
			continue
		}
		b[w] = c
		w++
	}
	return w, i, quoted
}
