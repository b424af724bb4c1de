package jsonx

import (
	"hash/maphash"
	"math/bits"
)

// fewKeys is up to how many keys comparing each with each other is faster than a table.
const fewKeys = 16

// distinct finds repeated keys. Its table is scratch memory.
type distinct struct {
	seed   maphash.Seed // random, so that no text can be made whose keys collide
	seeded bool
	places []int32 // open addressing: an index into the keys plus one, 0 for an unused place
}

// repeated returns the index of a key that has the meaning of an earlier one, -1 if there is none.
// It costs time linear in the keys and their bytes.
func (d *distinct) repeated(r *keyring, keys []key) int {
	if len(keys) > fewKeys {
		return d.lookUp(r, keys)
	}
	for i := 1; i < len(keys); i++ {
		for j := range keys[:i] {
			if keys[j].head == keys[i].head && r.same(&keys[j], &keys[i]) {
				return i
			}
		}
	}
	return -1
}

// lookUp is repeated through the table, of which at most half the places are used.
func (d *distinct) lookUp(r *keyring, keys []key) int {
	if !d.seeded {
		d.seed, d.seeded = maphash.MakeSeed(), true
	}
	size := 2 << bits.Len(uint(len(keys)-1))
	if cap(d.places) < size {
		d.places = make([]int32, size)
	}
	places := d.places[:size]
	clear(places)
	for i := range keys {
		k := int(maphash.Bytes(d.seed, r.meaning(&keys[i]))) & (size - 1)
		for ; places[k] != 0; k = (k + 1) & (size - 1) {
			if r.same(&keys[places[k]-1], &keys[i]) {
				return i
			}
		}
		places[k] = int32(i + 1)
	}
	return -1
}
