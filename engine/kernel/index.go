package kernel

// index finds slots by hash: open addressing with linear probing. An entry's tag is 32 bits of the
// key's hash and gives the home position, so that growth and deletion need no row. Deletion shifts
// the following entries back: there are no tombstones, and look-ups stay short.
type index struct {
	entries []entry
	n       int
}

// entry is one place of an index.
type entry struct {
	tag  uint32
	slot uint32 // plus one; 0 in an empty entry
	// text is where the key is kept. It stands here, and not only in the row, so that a look-up can
	// fetch the key and the row at the same time: at a million rows each is a wait for memory.
	text uint32
}

// minIndex is the first size: a cache line of entries or so.
const minIndex = 8

// probe returns the first entry at or after pos in tag's run whose tag matches, and the position
// behind it; nil when the run ends. Start with pos = tag. The entry is valid until the index
// changes.
func (x *index) probe(tag, pos uint32) (e *entry, next uint32) {
	if len(x.entries) == 0 {
		return nil, 0
	}
	mask := uint32(len(x.entries) - 1)
	for {
		e := &x.entries[pos&mask]
		if e.slot == 0 {
			return nil, 0
		}
		pos++
		if e.tag == tag {
			return e, pos
		}
	}
}

// insert adds slot, whose key is kept at text, under tag. It grows at a load of 3/4, where an
// unsuccessful search still ends within about a cache line.
func (x *index) insert(tag, slot, text uint32) {
	if x.full() {
		x.grow(nil)
	}
	x.place(entry{tag, slot + 1, text})
	x.n++
}

func (x *index) place(e entry) {
	mask := uint32(len(x.entries) - 1)
	pos := e.tag & mask
	for x.entries[pos].slot != 0 {
		pos = (pos + 1) & mask
	}
	x.entries[pos] = e
}

// full reports whether the next insert grows it.
func (x *index) full() bool { return (x.n+1)*4 > len(x.entries)*3 }

// grow doubles it. h may be nil: see hugeSlice.
func (x *index) grow(h *hugeAdvisor) {
	old := x.entries
	x.entries = hugeSlice[entry](h, max(minIndex, 2*len(old)))
	clear(x.entries) // as newPiece writes
	for _, e := range old {
		if e.slot != 0 {
			x.place(e)
		}
	}
}

// remove deletes the entry of slot under tag, which must be there.
func (x *index) remove(tag, slot uint32) {
	mask := uint32(len(x.entries) - 1)
	hole := tag & mask
	for x.entries[hole].slot != slot+1 {
		hole = (hole + 1) & mask
	}
	for pos := (hole + 1) & mask; x.entries[pos].slot != 0; pos = (pos + 1) & mask {
		home := x.entries[pos].tag & mask
		// The entry may move back only if the hole is not before its home.
		if (pos-home)&mask >= (pos-hole)&mask {
			x.entries[hole] = x.entries[pos]
			hole = pos
		}
	}
	x.entries[hole] = entry{}
	x.n--
}
