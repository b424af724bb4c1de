package kernel

// indexChunk indexes are allocated together: 512 bytes are a size class of the Go allocator.
const indexChunk = 64

// indexes holds by slot the index of the last record about a rate log. It is beside the logs: a
// kernel without a journal has no chunks. Otherwise it costs 8 bytes a slot. The shard's mutex
// guards it.
type indexes struct{ chunks []*[indexChunk]uint64 }

// set remembers index; 0 is no index.
func (x *indexes) set(slot uint32, index uint64) {
	if index == 0 {
		return
	}
	for int(slot/indexChunk) >= len(x.chunks) {
		x.chunks = append(x.chunks, new([indexChunk]uint64))
	}
	x.chunks[slot/indexChunk][slot%indexChunk] = index
}

// at returns the index remembered for slot, 0 if there is none.
func (x *indexes) at(slot uint32) uint64 {
	if int(slot/indexChunk) >= len(x.chunks) {
		return 0
	}
	return x.chunks[slot/indexChunk][slot%indexChunk]
}

// clear forgets slot, which becomes free.
func (x *indexes) clear(slot uint32) {
	if int(slot/indexChunk) < len(x.chunks) {
		x.chunks[slot/indexChunk][slot%indexChunk] = 0
	}
}
