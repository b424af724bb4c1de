package kernel

// index finds slots by hash: open addressing with linear probing over entries of tag<<32 | slot+1, 0 being empty. The tag is
// 32 bits of the key's hash and gives the home position, so that neither growth nor deletion has to look at a row. Deletion
// shifts the following entries back: churn leaves no tombstones and look-ups stay as short as the load makes them.
type index struct {
	entries []uint64
	n       int
}

// minIndex is the first size: a cache line of entries.
const minIndex = 8

// probe returns the first slot at or after pos in tag's run whose tag matches, and the position behind it; none when the run
// ends. Start with pos = tag.
func (x *index) probe(tag, pos uint32) (slot, next uint32) {
	if len(x.entries) == 0 {
		return none, 0
	}
	mask := uint32(len(x.entries) - 1)
	for {
		e := x.entries[pos&mask]
		if e == 0 {
			return none, 0
		}
		pos++
		if uint32(e>>32) == tag {
			return uint32(e) - 1, pos
		}
	}
}

// insert adds slot under tag. It grows at a load of 3/4, where an unsuccessful search still ends within about a cache line.
func (x *index) insert(tag, slot uint32) {
	if (x.n+1)*4 > len(x.entries)*3 {
		x.grow()
	}
	x.place(uint64(tag)<<32 | uint64(slot+1))
	x.n++
}

func (x *index) place(e uint64) {
	mask := uint32(len(x.entries) - 1)
	pos := uint32(e>>32) & mask
	for x.entries[pos] != 0 {
		pos = (pos + 1) & mask
	}
	x.entries[pos] = e
}

func (x *index) grow() {
	old := x.entries
	x.entries = make([]uint64, max(minIndex, 2*len(old)))
	for _, e := range old {
		if e != 0 {
			x.place(e)
		}
	}
}

// remove deletes the entry of slot under tag, which must be there.
func (x *index) remove(tag, slot uint32) {
	mask := uint32(len(x.entries) - 1)
	want := uint64(tag)<<32 | uint64(slot+1)
	hole := tag & mask
	for x.entries[hole] != want {
		hole = (hole + 1) & mask
	}
	for pos := (hole + 1) & mask; x.entries[pos] != 0; pos = (pos + 1) & mask {
		home := uint32(x.entries[pos]>>32) & mask
		// The entry may move back only if the hole is not before its home.
		if (pos-home)&mask >= (pos-hole)&mask {
			x.entries[hole] = x.entries[pos]
			hole = pos
		}
	}
	x.entries[hole] = 0
	x.n--
}
