package kernel

import (
	"bytes"
	"slices"
	"sort"
	"unsafe"
)

// listBatch is how many processes List looks up per hold of the scheduling lock.
const listBatch = 256

// ListFilter selects processes (kernel-ipc §4.10); conditions are ANDed.
type ListFilter struct {
	HasState bool
	State    State
	// UserID nil means any.
	UserID []byte
	// Cursor is the PCB.Created of a listed process. The walk continues after it, also if that
	// process is gone.
	Cursor uint64
}

// List calls visit for each selected process in creation order until visit returns false. The PCB
// is lent for the call. No lock is held: visit may be slow and may call the kernel. Each process is
// shown as it is at its turn; one that exists during the whole walk and fits is shown exactly once.
func (k *Kernel) List(f *ListFilter, visit func(*PCB) bool) {
	var (
		seqs   [listBatch]uint64
		refs   [listBatch]uint32
		out    PCB
		cursor = k.unlisted(f.Cursor)
	)
	for {
		k.mu.Lock()
		n := k.order.after(cursor, seqs[:], refs[:])
		k.mu.Unlock()
		for i := range n {
			if k.pick(f, seqs[i], refs[i], &out) && !visit(&out) {
				return
			}
		}
		if n < listBatch {
			return
		}
		cursor = seqs[n-1]
	}
}

// pick copies the process of creation sequence seq at ref to out if it is still there and fits f.
func (k *Kernel) pick(f *ListFilter, seq uint64, ref uint32, out *PCB) bool {
	sh := &k.shards[ref&uint32(len(k.shards)-1)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := sh.row(ref >> k.shardBits)
	if r.created != seq || f.HasState && r.state != f.State || f.UserID != nil && !bytes.Equal(sh.userID(r), f.UserID) {
		return false
	}
	sh.fill(out, r)
	out.Created = k.listed(seq)
	return true
}

// localSequences bounds the creation sequences that each of several partitions counted from 1 on.
// Clusters have processes from that time.
const localSequences = 1 << 40

// listed returns the creation sequence under which List shows a process. Where each partition
// counted by itself, it is made unique among the partitions: the order of a partition stays, and
// all those processes come before the ones of shared sequences.
func (k *Kernel) listed(seq uint64) uint64 {
	if n := k.cfg.Partitions; n > 1 && seq < localSequences {
		return seq*n + k.cfg.Partition
	}
	return seq
}

// unlisted returns the last creation sequence of this partition that is listed at cursor or before.
func (k *Kernel) unlisted(cursor uint64) uint64 {
	n := k.cfg.Partitions
	if n <= 1 || cursor >= localSequences*n {
		return cursor
	}
	return (cursor - min(cursor, k.cfg.Partition)) / n
}

// orderChunkLen entries of 12 bytes, a count and a mark are a size class of the Go allocator (3072
// bytes).
const orderChunkLen = 255

// spareOrderChunks is how many empty chunks are kept for the next demand.
const spareOrderChunks = 4

// orderChunk holds processes by creation sequence, ascending.
type orderChunk struct {
	n   int
	seq [orderChunkLen]uint64
	ref [orderChunkLen]uint32
	// reserved is that the chunk is a piece of a longer run, of which it would keep all.
	reserved bool
}

// order is the creation order of all processes: a sorted sequence of sorted chunks. Sequences only
// grow, so insertion appends. Removal finds its chunk by binary search and merges it with a
// neighbour once both fit into one, so chunks are at least half full on average. Guarded by the
// scheduling lock.
type order struct {
	chunks []*orderChunk
	spare  []*orderChunk
}

// reserve gets memory for so many appends to an empty order at once. h may be nil: see hugeSlice.
func (o *order) reserve(n int, h *hugeAdvisor) {
	left := (n + orderChunkLen - 1) / orderChunkLen
	o.spare = slices.Grow(o.spare, left)
	for left > 0 {
		run := hugeSlice[orderChunk](h, min(left, stockRun/int(unsafe.Sizeof(orderChunk{}))))
		for i := range run {
			run[i].reserved = true
			o.spare = append(o.spare, &run[i])
		}
		left -= len(run)
	}
	slices.Reverse(o.spare) // the last one is taken first
}

// append adds a process; seq is greater than all before.
func (o *order) append(seq uint64, ref uint32) {
	last := len(o.chunks) - 1
	if last < 0 || o.chunks[last].n == orderChunkLen {
		o.chunks = append(o.chunks, o.takeChunk())
		last++
	}
	c := o.chunks[last]
	c.seq[c.n], c.ref[c.n] = seq, ref
	c.n++
}

// remove deletes the process of creation sequence seq, if there.
func (o *order) remove(seq uint64) {
	at := o.chunkOf(seq)
	if at == len(o.chunks) {
		return
	}
	c := o.chunks[at]
	i := c.search(seq)
	if c.seq[i] != seq {
		return
	}
	copy(c.seq[i:c.n], c.seq[i+1:c.n])
	copy(c.ref[i:c.n], c.ref[i+1:c.n])
	c.n--
	o.settle(at)
}

// settle drops chunk at if it is empty, or merges it with a neighbour if both fit into one chunk.
func (o *order) settle(at int) {
	c := o.chunks[at]
	switch {
	case c.n == 0:
		o.dropChunk(at)
	case at > 0 && o.chunks[at-1].n+c.n <= orderChunkLen:
		o.merge(at - 1)
	case at+1 < len(o.chunks) && o.chunks[at+1].n+c.n <= orderChunkLen:
		o.merge(at)
	}
}

// merge moves the entries of chunk at+1 to the end of chunk at.
func (o *order) merge(at int) {
	a, b := o.chunks[at], o.chunks[at+1]
	copy(a.seq[a.n:], b.seq[:b.n])
	copy(a.ref[a.n:], b.ref[:b.n])
	a.n += b.n
	o.dropChunk(at + 1)
}

// after copies references with a creation sequence greater than cursor to seqs and refs, which are
// equally long, and returns how many.
func (o *order) after(cursor uint64, seqs []uint64, refs []uint32) int {
	if cursor+1 == 0 {
		return 0
	}
	n := 0
	for at := o.chunkOf(cursor + 1); at < len(o.chunks) && n < len(refs); at++ {
		c := o.chunks[at]
		i := 0
		if n == 0 {
			i = c.search(cursor + 1)
		}
		copy(seqs[n:], c.seq[i:c.n])
		n += copy(refs[n:], c.ref[i:c.n])
	}
	return n
}

// chunkOf returns the first chunk whose last entry is at least seq.
func (o *order) chunkOf(seq uint64) int {
	return sort.Search(len(o.chunks), func(i int) bool { c := o.chunks[i]; return c.seq[c.n-1] >= seq })
}

// search returns the first entry that is at least seq.
func (c *orderChunk) search(seq uint64) int {
	return sort.Search(c.n, func(i int) bool { return c.seq[i] >= seq })
}

func (o *order) takeChunk() *orderChunk {
	if n := len(o.spare); n > 0 {
		c := o.spare[n-1]
		o.spare = o.spare[:n-1]
		return c
	}
	return new(orderChunk)
}

func (o *order) dropChunk(at int) {
	c := o.chunks[at]
	copy(o.chunks[at:], o.chunks[at+1:])
	o.chunks[len(o.chunks)-1] = nil
	o.chunks = o.chunks[:len(o.chunks)-1]
	c.n = 0
	if len(o.spare) < spareOrderChunks && !c.reserved {
		o.spare = append(o.spare, c)
	}
}
