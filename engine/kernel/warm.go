//go:build !race

package kernel

import (
	"hash/maphash"
	"sync/atomic"
)

// maxWarm is how many look-ups Warm has in flight: about what a core's reorder window can overlap.
const maxWarm = 16

// warmFrom is the size of one shard's index, in entries, from which on prefetching pays: 48 rows a
// shard, some 3,000 over 64 shards. Smaller ones stay in a core's second-level cache.
const warmFrom = 128

// warmView is what Warm may read of a shard without its mutex: slice headers that are replaced.
type warmView struct {
	entries []entry
	rows    []*[rowChunk]row
	pages   []*[pageSize]byte
}

// warmed is the published view; see Warm.
type warmed struct{ view atomic.Pointer[warmView] }

// warmedNodes is the same of the scheduler's nodes.
type warmedNodes struct {
	chunks atomic.Pointer[[]*[nodeChunk]node]
}

// publish renews the view after chunks grew. Caller holds the scheduling lock.
func (w *warmedNodes) publish(chunks []*[nodeChunk]node) { w.chunks.Store(&chunks) }

// touch loads a word of node i and of its list neighbours. The links may be of any moment.
func (w *warmedNodes) touch(i uint32) (sum uint32) {
	p := w.chunks.Load()
	if p == nil {
		return 0
	}
	n := nodeIn(*p, i)
	if n == nil {
		return 0
	}
	for _, i := range [...]uint32{n.prev, n.next} {
		if other := nodeIn(*p, i); other != nil {
			sum += other.ref
		}
	}
	return sum
}

func nodeIn(chunks []*[nodeChunk]node, i uint32) *node {
	if c := i / nodeChunk; int(c) < len(chunks) && chunks[c] != nil {
		return &chunks[c][i%nodeChunk]
	}
	return nil
}

// publish renews the view after a slice may have moved. Caller holds the shard's mutex.
func (w *warmed) publish(s *shard) {
	v := w.view.Load()
	if v != nil && len(v.entries) == len(s.index.entries) && len(v.rows) == len(s.rows) && len(v.pages) == len(s.texts.pages) {
		return
	}
	w.view.Store(&warmView{s.index.entries, s.rows, s.texts.pages})
}

// Warm prefetches the rows of pids, so that operations on them do not each wait for memory. It
// changes nothing and its outcome means nothing: it reads single words without a lock, through
// slice headers that are published whole. The loads of different pids overlap: at a million rows
// they are most of the cost of a request. So each step is made for all pids before the next one.
// Race builds leave it out.
func (k *Kernel) Warm(pids [][]byte, need Need) (sum uint32) {
	if v := k.shards[0].warm.view.Load(); v == nil || len(v.entries) < warmFrom {
		return 0 // one shard is as full as the others
	}
	var w [maxWarm]warming
	pids = pids[:min(len(pids), maxWarm)]
	for i, pid := range pids {
		h := maphash.Bytes(k.seed, pid)
		if v := k.shards[h&uint64(len(k.shards)-1)].warm.view.Load(); v != nil && len(v.entries) > 0 {
			w[i].view, w[i].tag = v, uint32(h>>32)
			sum += v.entries[w[i].tag&uint32(len(v.entries)-1)].text
		}
	}
	for i := range pids {
		if w[i].view != nil {
			w[i].found = w[i].view.find(w[i].tag)
		}
	}
	for i := range pids {
		if w[i].found.slot != 0 {
			sum += w[i].touch(need)
		}
	}
	if need&NeedQueue != 0 {
		for i := range pids {
			sum += k.sched.nodes.warm.touch(w[i].node)
		}
	}
	return sum
}

// warming is one pid on its way through Warm.
type warming struct {
	view  *warmView
	tag   uint32
	found entry
	node  uint32
}

// find returns the first entry whose tag matches, an empty one if none does near its home.
func (v *warmView) find(tag uint32) entry {
	mask := uint32(len(v.entries) - 1)
	for n := uint32(0); n < 8 && len(v.entries) > 0; n++ {
		e := v.entries[(tag+n)&mask]
		if e.tag == tag || e.slot == 0 {
			return e
		}
	}
	return entry{}
}

// touch loads a word of each line of the row, and of those of the identifiers that are needed.
func (w *warming) touch(need Need) (sum uint32) {
	v, e := w.view, w.found
	if slot := e.slot - 1; int(slot/rowChunk) < len(v.rows) {
		r := &v.rows[slot/rowChunk][slot%rowChunk]
		w.node = r.node
		sum = r.quota // on the other line
	}
	page, off := e.text/pageGranules, e.text%pageGranules*granule
	if int(page) >= len(v.pages) {
		return sum
	}
	p := v.pages[page]
	if p == nil {
		return sum
	}
	sum += uint32(p[off]) + uint32(p[(off+pidEnd)%pageSize])
	if need&NeedIDs != 0 {
		sum += uint32(p[(off+pidEnd+line)%pageSize]) + uint32(p[(off+idsEnd)%pageSize])
	}
	return sum
}

// Where the identifiers end, if they are UUIDs, and how much memory comes at a time.
const (
	pidEnd = 36 - 1
	idsEnd = 4*36 - 1
	line   = 64
)
