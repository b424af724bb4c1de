package orchestration

import (
	"cmp"
	"encoding/binary"
	"slices"

	"trunkline/codec/mpack"
)

// valueWalk finds the id of one list or map in a single pass over its bytes. Every byte is looked at once: what lies inside a
// value that can no longer be known is stepped over, not entered, and nothing is read again on the way out. That keeps a value of
// many levels from costing its size at each of them.
type valueWalk struct {
	set    *valueSet
	adding bool
	limit  int // on set.members, while adding
	full   bool

	open  []openValue
	items []item // of all open values, the innermost last
	key   []byte // scratch
}

// openValue is a list or map whose end is not reached.
type openValue struct {
	left  int     // elements or pairs still to come
	from  int     // its first item
	dedup int     // number of items at which repeated keys are taken out
	key   valueID // of the pair whose value is being read
	isMap bool
}

// item is an element of a list or a pair of a map.
type item struct{ key, value valueID }

// firstDedup is openValue.dedup of a new map.
const firstDedup = 8

// opened in place of an id says that a list or map was entered and its id is not known yet.
const opened valueID = -2

// walk returns the id of the value raw.
func (w *valueWalk) walk(raw []byte) valueID {
	for i := 0; ; {
		id := opened
		id, i = w.step(raw, i)
		for id != opened {
			if len(w.open) == 0 {
				if w.full {
					return unknownID
				}
				return id
			}
			id, i = w.take(id, raw, i)
		}
	}
}

// step reads the value at b[i], with its key if it is in a map.
func (w *valueWalk) step(b []byte, i int) (id valueID, next int) {
	if n := len(w.open); n > 0 && w.open[n-1].isMap {
		if w.open[n-1].key = w.scalar(b[i:]); w.open[n-1].key == unknownID {
			return w.drop(b, i)
		}
		i = mpack.Next(b, i)
	}
	if i < len(b) && isContainer(b[i:]) {
		return w.enter(b, i)
	}
	return w.scalar(b[i:]), mpack.Next(b, i)
}

func (w *valueWalk) scalar(raw []byte) valueID {
	if w.adding {
		return w.set.addScalar(raw)
	}
	return w.set.scalar(raw)
}

// enter opens the list or map at b[i]. An empty one is at its end at once.
func (w *valueWalk) enter(b []byte, i int) (id valueID, next int) {
	n, content := header(b, i)
	mapping := isMap(b[i])
	switch s := w.set; {
	case w.adding && n > w.limit-s.members:
		w.full = true
		return unknownID, mpack.Next(b, i)
	case w.adding:
		s.members += n
		if !mapping {
			s.longest = max(s.longest, n)
		}
	case !mapping && n > s.longest:
		return unknownID, mpack.Next(b, i)
	}
	w.open = append(w.open, openValue{left: n, from: len(w.items), dedup: firstDedup, isMap: mapping})
	if n == 0 {
		return w.leave(), content
	}
	return opened, content
}

// header reads the head of the list or map at b[i]: how many elements or pairs it has and where the first one begins.
func header(b []byte, i int) (n, content int) {
	switch content = i + 1; b[i] {
	case 0xdc, 0xde:
		content = i + 3
	case 0xdd, 0xdf:
		content = i + 5
	}
	content = min(content, len(b)) // a head that is cut off, where nobody checked the bytes
	if isMap(b[i]) {
		m := mpack.OpenMap(b[i:])
		return m.Len(), content
	}
	l := mpack.OpenList(b[i:])
	return l.Len(), content
}

// take gives a value whose end is i to the list or map around it, and returns the id of that if it is at its end too.
func (w *valueWalk) take(id valueID, b []byte, i int) (outer valueID, next int) {
	o := &w.open[len(w.open)-1]
	o.left--
	if !o.isMap && id == unknownID {
		return w.drop(b, i)
	}
	w.items = append(w.items, item{o.key, id})
	if o.left == 0 {
		return w.leave(), i
	}
	if o.isMap && len(w.items)-o.from >= o.dedup {
		w.items = lastOfKeys(w.items, o.from)
		o.dedup = 2*(len(w.items)-o.from) + firstDedup
	}
	// With repeated keys out of the way up to the factor two of dedup, the open values have more members than all rules have:
	// the innermost one is in no value that is known, unless a repetition is still to replace one around it.
	if !w.adding && len(w.items) > 2*w.set.members+firstDedup*len(w.open) {
		return w.drop(b, i)
	}
	return opened, i
}

// drop gives up the innermost list or map, the rest of which begins at b[i]: no rule has it.
func (w *valueWalk) drop(b []byte, i int) (id valueID, next int) {
	o := w.pop()
	rest := o.left
	if o.isMap {
		rest *= 2
	}
	for ; rest > 0 && i < len(b); rest-- {
		i = mpack.Next(b, i)
	}
	return unknownID, i
}

// leave returns the id of the innermost list or map, all of whose members are known by their ids.
func (w *valueWalk) leave() valueID {
	top := &w.open[len(w.open)-1]
	in := &w.set.lists
	if top.isMap {
		in = &w.set.maps
		w.items = lastOfKeys(w.items, top.from)
	}
	w.key = w.key[:0]
	for _, it := range w.items[top.from:] {
		if it.value == unknownID {
			w.pop()
			return unknownID
		}
		if top.isMap {
			w.key = binary.LittleEndian.AppendUint32(w.key, uint32(it.key))
		}
		w.key = binary.LittleEndian.AppendUint32(w.key, uint32(it.value))
	}
	w.pop()
	id := known((*in)[string(w.key)])
	if id == unknownID && w.adding {
		id = w.set.addText(in, w.key)
	}
	return id
}

// pop closes the innermost list or map.
func (w *valueWalk) pop() openValue {
	o := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	w.items = w.items[:o.from]
	return o
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
