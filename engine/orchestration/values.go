package orchestration

import (
	"encoding/binary"
	"math"

	"trunkline/codec/mpack"
)

// valueID stands for a value: two values of a pipeline's rules have the same id if and only if they are equal by deep JSON
// equality (envelope §3.9, D34).
type valueID int32

// The ids that every valueSet has.
const (
	unknownID valueID = iota - 1 // a value no rule has
	nilID
	falseID
	trueID
	firstID
)

// valueSet gives ids to the values of a pipeline's rules, from the leaves up: a list is known by the ids of its elements, a map by
// those of its keys and values in an order of its own. To compare an output's value with all rules is then to look up its id:
// exact, once per value however many rules there are, and never comparing the same bytes twice. The zero value knows nil, false
// and true.
type valueSet struct {
	numbers map[number]valueID
	strings map[string]valueID // map keys too
	// The lists and maps, by kind and the ids of their members.
	lists, maps map[string]valueID

	n       valueID // ids given behind trueID
	members int     // elements and pairs of all lists and maps added, at any depth
	longest int     // number of elements of the longest list added
	size    int64   // estimate of the bytes kept
}

// number is a number by its mathematical value: an integral one in the range of int64 or uint64 is Int or BigUint with its bits,
// wherever it came as a float; any other is Float with the bits of a float64.
type number struct {
	kind mpack.Kind
	bits int64
}

// isContainer reports whether raw encodes a list or map.
func isContainer(raw []byte) bool {
	return len(raw) > 0 && (raw[0]&0xe0 == 0x80 || raw[0] >= 0xdc && raw[0] <= 0xdf)
}

// isMap tells a map from a list by its first byte.
func isMap(first byte) bool { return first <= 0x8f || first >= 0xde }

// find returns the id of the value raw, unknownID if no rule has it. raw passed the Scanner. It allocates for lists and maps only;
// what it holds meanwhile is bounded by what the rules hold, its time is linear in raw, and it does not recurse.
func (s *valueSet) find(raw []byte) valueID {
	if !isContainer(raw) {
		return s.scalar(raw)
	}
	w := valueWalk{set: s}
	return w.walk(raw)
}

// add returns the id of the value raw, a new one if need be, or unknownID if the set would have more than limit members.
func (s *valueSet) add(raw []byte, limit int) valueID {
	w := valueWalk{set: s, adding: true, limit: limit}
	return w.walk(raw)
}

// scalar returns the id of a value that is no list and no map.
func (s *valueSet) scalar(raw []byte) valueID {
	v := mpack.ReadValue(raw)
	switch v.Kind {
	case mpack.Nil:
		return nilID
	case mpack.Bool:
		return falseID + valueID(v.Int)
	case mpack.Str:
		return known(s.strings[string(v.Data)])
	case mpack.Int, mpack.BigUint, mpack.Float:
		return known(s.numbers[numberOf(raw, v)])
	}
	return unknownID
}

// known turns what a map has for a missing key into unknownID: no key of a map here has nilID.
func known(id valueID) valueID {
	if id == nilID {
		return unknownID
	}
	return id
}

// addScalar is scalar that gives an id to what has none.
func (s *valueSet) addScalar(raw []byte) valueID {
	if id := s.scalar(raw); id != unknownID {
		return id
	}
	v := mpack.ReadValue(raw)
	switch v.Kind {
	case mpack.Str:
		return s.addText(&s.strings, v.Data)
	case mpack.Int, mpack.BigUint, mpack.Float:
		if s.numbers == nil {
			s.numbers = make(map[number]valueID)
		}
		id := s.nextID(0)
		s.numbers[numberOf(raw, v)] = id
		return id
	}
	return unknownID
}

// addText gives an id to text, copied, in one of the maps keyed by bytes.
func (s *valueSet) addText(to *map[string]valueID, text []byte) valueID {
	if *to == nil {
		*to = make(map[string]valueID)
	}
	id := s.nextID(len(text))
	(*to)[string(text)] = id
	return id
}

func (s *valueSet) nextID(text int) valueID {
	s.size += mapWeight + int64(text)
	s.n++
	return firstID + s.n - 1
}

// numberOf returns the number whose encoding is raw and whose reading is v.
func numberOf(raw []byte, v mpack.Value) number {
	if v.Kind != mpack.Float {
		return number{v.Kind, v.Int}
	}
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
