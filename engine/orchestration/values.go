package orchestration

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/engine/envelope"
)

// valueID stands for a value: two values of a pipeline's rules have the same id if and only if they
// are equal by deep JSON equality (envelope §3.9, D34).
type valueID int32

// unknownID is the id of a value that no rule has.
const unknownID valueID = 0

// valueSet gives ids to the values of a pipeline's rules, from the leaves up: a list is known by
// the ids of its elements, a map by those of its keys and values in an order of its own. To compare
// an output's value with all rules is then to look up its id: exact, once per value however many
// rules there are, and never comparing the same bytes twice. The zero value is empty.
type valueSet struct {
	numbers map[number]valueID // nil and bool too
	texts   [3]map[string]valueID
	n       valueID // ids given
	members int     // elements and pairs of all lists and maps added, at any depth
	size    int64   // estimate of the bytes kept
}

// number is what a number, a bool or nil is known by. An integral number in the range of int64 or
// uint64 is Int or BigUint, wherever it came as a float.
type number struct {
	kind mpack.Kind
	bits int64
}

// The maps of valueSet.texts: by the bytes of a string, or by the ids of the members of a list or
// map.
const (
	ofString = iota
	ofList
	ofMap
)

// valueWeight estimates the bytes that a value takes beside its text.
const valueWeight = 64

// isContainer reports whether raw encodes a list or map.
func isContainer(raw []byte) bool {
	return len(raw) > 0 && (raw[0]&0xe0 == 0x80 || raw[0] >= 0xdc && raw[0] <= 0xdf)
}

// isMap distinguishes a map from a list by its first byte.
func isMap(first byte) bool { return first <= 0x8f || first >= 0xde }

// find returns the id of the value raw, unknownID if no rule has it. raw passed the Scanner. It
// allocates for lists and maps only; what it holds meanwhile is bounded by what the rules hold, and
// its time is linear in raw.
func (s *valueSet) find(raw []byte) valueID {
	w := valueWalk{set: s}
	id, _ := w.value(raw, 0)
	return id
}

// add returns the id of the value raw, a new one if need be, or unknownID if the set would have
// more than limit members.
func (s *valueSet) add(raw []byte, limit int) valueID {
	w := valueWalk{set: s, adding: true, limit: limit}
	if id, _ := w.value(raw, 0); !w.full {
		return id
	}
	return unknownID
}

// numberOf returns the number that is the float whose encoding is raw.
func numberOf(raw []byte) number {
	var f float64
	if raw[0] == 0xca {
		f = float64(math.Float32frombits(binary.BigEndian.Uint32(raw[1:])))
	} else {
		f = math.Float64frombits(binary.BigEndian.Uint64(raw[1:]))
	}
	// The ends of the ranges are powers of two, so these comparisons and conversions are exact.
	switch {
	case f != math.Trunc(f) || f < -1<<63 || f >= 1<<64:
		return number{mpack.Float, int64(math.Float64bits(f))}
	case f >= 1<<63:
		return number{mpack.BigUint, int64(uint64(f))}
	}
	return number{mpack.Int, int64(f)}
}

// valueWalk finds the id of one value in a single pass over its bytes. Every byte is looked at
// once: what lies inside a value that can no longer be known is stepped over, not entered, and
// nothing is read again on the way out. That keeps a value of many levels from costing its size at
// each of them.
type valueWalk struct {
	set    *valueSet
	adding bool
	limit  int // on set.members, while adding
	full   bool

	depth int    // of open lists and maps
	items []item // of all of them, those of the innermost last
	key   []byte // scratch
}

// item is an element of a list or a pair of a map.
type item struct{ key, value valueID }

// firstDedup is the number of pairs of a map at which repeated keys are taken out for the first
// time.
const firstDedup = 8

// value returns the id of the value at b[i] and where it ends.
func (w *valueWalk) value(b []byte, i int) (id valueID, next int) {
	if i >= len(b) || !isContainer(b[i:]) {
		return w.scalar(b[i:]), mpack.Next(b, i)
	}
	mapping, s := isMap(b[i]), w.set
	n, at := header(b, i)
	w.full = w.full || w.adding && n > w.limit-s.members
	if w.full || w.depth == wire.MaxMsgpackDepth || !w.adding && !mapping && n > s.members {
		return unknownID, mpack.Next(b, i)
	}
	if w.adding {
		s.members += n
	}
	w.depth++
	from, dedup, known := len(w.items), firstDedup, true
	for ; n > 0; n-- {
		var it item
		if mapping {
			if known {
				it.key = w.scalar(b[at:])
				known = it.key != unknownID
			}
			at = mpack.Next(b, at)
		}
		if !known {
			at = mpack.Next(b, at)
			continue
		}
		it.value, at = w.value(b, at)
		w.items = append(w.items, it)
		if mapping && len(w.items)-from >= dedup {
			w.items = lastOfKeys(w.items, from)
			dedup = 2*(len(w.items)-from) + firstDedup
		}
		// With repeated keys out of the way up to the factor two of dedup, the open values have
		// more members than all rules have: the innermost one is in no value that is known, unless
		// a repetition is still to replace one around it.
		few := w.adding || n == 1 || len(w.items) <= 2*s.members+firstDedup*w.depth
		known = few && (mapping || it.value != unknownID)
	}
	if known {
		id = w.container(from, mapping)
	}
	w.items, w.depth = w.items[:from], w.depth-1
	return id, at
}

// scalar returns the id of a value that is no list and no map.
func (w *valueWalk) scalar(raw []byte) valueID {
	v := mpack.ReadValue(raw)
	key := number{v.Kind, v.Int}
	switch v.Kind {
	case mpack.Str:
		return w.text(ofString, v.Data)
	case mpack.Float:
		key = numberOf(raw)
	case mpack.Absent, mpack.Array, mpack.Map:
		return unknownID
	}
	s := w.set
	id := s.numbers[key]
	if id == unknownID && w.adding {
		if s.numbers == nil {
			s.numbers = make(map[number]valueID)
		}
		id = s.next(0)
		s.numbers[key] = id
	}
	return id
}

// container returns the id of the list or map whose members are items[from:].
func (w *valueWalk) container(from int, mapping bool) valueID {
	in := ofList
	if mapping {
		in = ofMap
		w.items = lastOfKeys(w.items, from)
	}
	w.key = w.key[:0]
	for _, it := range w.items[from:] {
		if it.value == unknownID {
			return unknownID
		}
		w.key = binary.LittleEndian.AppendUint32(w.key, uint32(it.key))
		w.key = binary.LittleEndian.AppendUint32(w.key, uint32(it.value))
	}
	return w.text(in, w.key)
}

// text looks a value up in one of the set's texts; while adding, a new one gets an id.
func (w *valueWalk) text(in int, text []byte) valueID {
	s := w.set
	id := s.texts[in][string(text)]
	if id == unknownID && w.adding {
		if s.texts[in] == nil {
			s.texts[in] = make(map[string]valueID)
		}
		id = s.next(len(text))
		s.texts[in][string(text)] = id
	}
	return id
}

// next returns a new id for a value with so many bytes of text.
func (s *valueSet) next(text int) valueID {
	s.size += valueWeight + int64(text)
	s.n++
	return s.n
}

// header reads the head of the list or map at b[i]: how many elements or pairs it has and where the
// first one begins.
func header(b []byte, i int) (n, content int) {
	switch content = i + 1; b[i] {
	case 0xdc, 0xde:
		content = i + 3
	case 0xdd, 0xdf:
		content = i + 5
	}
	content = min(content, len(b)) // a head that is cut off, where the bytes were not checked
	list, m := mpack.OpenList(b[i:]), mpack.OpenMap(b[i:])
	return list.Len() + m.Len(), content
}

// lastOfKeys sorts items[from:] by key and keeps the last one of each.
func lastOfKeys(items []item, from int) []item {
	pairs := items[from:]
	slices.SortStableFunc(pairs, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	n := 0
	for i := range pairs {
		if n > 0 && pairs[n-1].key == pairs[i].key {
			n--
		}
		pairs[n] = pairs[i]
		n++
	}
	return items[:from+n]
}

// mapField returns the encoded value of a field that is a map, or JSON text of one (envelope §3.1);
// text is where that is turned into MessagePack. kind begins the refusal of text that is not JSON.
func (c *Call) mapField(v mpack.Value, field, kind string, text *[]byte) (raw []byte, code wire.Code) {
	switch v.Kind {
	case mpack.Map:
		return v.Data, wire.OK
	case mpack.Absent, mpack.Nil:
		return nil, c.refuse(wire.InvalidArgument, "Missing required field: ", []byte(field), "")
	case mpack.Str:
	default:
		return nil, c.refuse(wire.InvalidArgument, field, nil, " must be an object")
	}
	c.Work += len(v.Data)
	data := jsonx.TrimBOM(v.Data)
	if p := jsonx.Check(data, jsonx.MaxDepth); !p.OK() {
		c.refuse(wire.InvalidArgument, kind, nil, "Invalid JSON: ")
		c.Msg = p.Append(c.Msg)
		return nil, wire.InvalidArgument
	}
	*text = transcode.AppendMsgPack((*text)[:0], data)
	return *text, wire.OK
}

const invalidEnvelope = "Invalid envelope: "

// Replies may nest as deep as requests (wire.MaxMsgpackDepth), and hold what came in a request
// inside of more.
const (
	aroundEnvelope = 2                  // the reply and its body
	aroundOutput   = aroundEnvelope + 2 // the envelope and its outputs
	tooDeep        = " nests too deep: its reply would have more than 512 levels"
)

// reshaped is how many levels at most an envelope gets while it is decoded and encoded again: a
// member moves into a section.
const reshaped = 2

// shallow refuses the envelope in c.buf, made of c.env, if its replies would nest too deep to be
// read back.
func (c *Call) shallow() wire.Code {
	if c.levels > 0 && c.levels <= wire.MaxMsgpackDepth-aroundEnvelope-reshaped || c.scan.Fits(c.buf, aroundEnvelope) {
		return wire.OK
	}
	return c.refuse(wire.InvalidArgument, "envelope", nil, tooDeep)
}

// decode reads an envelope into c.env.
func (c *Call) decode(raw []byte) wire.Code {
	c.Work += len(raw)
	c.levels = 0
	if p := c.env.Decode(envelope.MsgPack, raw); p != nil {
		return c.refuse(wire.InvalidArgument, invalidEnvelope, nil, p.Message())
	}
	return wire.OK
}

// envelopeField reads the field envelope into c.env.
func (c *Call) envelopeField(v mpack.Value) wire.Code {
	raw, code := c.mapField(v, "envelope", invalidEnvelope, &c.text)
	if code != wire.OK {
		return code
	}
	code = c.decode(raw)
	if v.Kind == mpack.Map {
		c.levels = int(v.Int)
	}
	return code
}

// pipelineField reads the field pipeline_config; source is a copy of it as MessagePack, if that is
// to be kept.
func (c *Call) pipelineField(v mpack.Value, keep bool) (p *Pipeline, source []byte, code wire.Code) {
	raw, code := c.mapField(v, "pipeline_config", "Invalid pipeline_config: ", &c.text)
	if code != wire.OK {
		return nil, nil, code
	}
	if mpack.KindOf(raw) != mpack.Map {
		return nil, nil, c.invalid("Invalid pipeline_config: must be an object")
	}
	p, refusal := ParsePipeline(raw)
	if refusal != "" {
		return nil, nil, c.invalid(refusal)
	}
	if keep {
		source = bytes.Clone(raw)
	}
	return p, source, wire.OK
}

// encode writes c.env, completed, into c.buf.
func (o *Engine) encode(c *Call) {
	c.env.Fill(c.wall(), o.cfg.NewID)
	c.buf = c.env.Append(c.buf[:0])
	c.Work += 2 * len(c.buf) // nearly all of it was decoded before
}
