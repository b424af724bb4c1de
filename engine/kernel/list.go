package kernel

import "bytes"

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
