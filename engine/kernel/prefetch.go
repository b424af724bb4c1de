//go:build !race

package kernel

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"
)

// warmFrom is the size of one shard's index, in entries, from which on prefetching pays: 48 rows a
// shard, some 3,000 over 64 shards. Smaller ones stay in a core's second-level cache.
const warmFrom = 128

// warmView is what Ahead may read of a shard without its mutex: slice headers that are replaced.
// Its size is a size class of the allocator whose objects begin on cache lines, and what is read is
// on the first one.
type warmView struct {
	entries []entry
	rows    []*[rowChunk]row
	pages   []*[pageSize]byte
	_       [56]byte
}

// warmed is the published view; see Ahead.
type warmed struct{ view atomic.Pointer[warmView] }

// warmedNodes is the same of the scheduler's nodes.
type warmedNodes struct {
	chunks atomic.Pointer[[]*[nodeChunk]node]
}

// publish renews the view after chunks grew. Caller holds the scheduling lock.
func (w *warmedNodes) publish(chunks []*[nodeChunk]node) { w.chunks.Store(&chunks) }

// at returns node i, nil if there is none.
func (w *warmedNodes) at(i uint32) *node {
	p := w.chunks.Load()
	if p == nil {
		return nil
	}
	if c := i / nodeChunk; int(c) < len(*p) && (*p)[c] != nil {
		return &(*p)[c][i%nodeChunk]
	}
	return nil
}

// publish renews the view after a slice may have moved. Caller holds the shard's mutex.
func (w *warmed) publish(s *shard) {
	v := w.view.Load()
	if v != nil && len(v.entries) == len(s.index.entries) && len(v.rows) == len(s.rows) && len(v.pages) == len(s.texts.pages) {
		return
	}
	w.view.Store(&warmView{entries: s.index.entries, rows: s.rows, pages: s.texts.pages})
}

// Ahead has the memory of one process fetched before an operation needs it; waiting for it would be
// most of the cost of a request. The steps are Begin, Row, Node, Neighbours; the last ones may be
// left out. Each reads what the one before asked for, so a caller does other work in between, such
// as the steps of other processes. They change nothing and may miss or find another process: they
// read single words without a lock, through slice headers that are published whole. They do not
// allocate. Race builds leave them out. The zero Ahead is ready.
type Ahead struct {
	view *warmView // nil: there is nothing to fetch
	tag  uint32
	sh   *shard
	r    *row // maybe that of the process, when it was looked for
	node *node
}

// row returns where the process may be: an operation looks there first.
func (a *Ahead) row() (*shard, *row) {
	if a == nil {
		return nil, nil
	}
	return a.sh, a.r
}

// Begin asks for the place in the index of process pid.
func (a *Ahead) Begin(k *Kernel, pid []byte) {
	a.view, a.r, a.node = nil, nil, nil
	if v := k.shards[0].warm.view.Load(); v == nil || len(v.entries) < warmFrom {
		return // one shard is as full as the others
	}
	h := maphash.Bytes(k.seed, pid)
	a.sh, a.tag = &k.shards[h&uint64(len(k.shards)-1)], uint32(h>>32)
	if a.view = a.sh.warm.view.Load(); a.view == nil || len(a.view.entries) == 0 {
		a.view = nil
		return
	}
	fetchLine(unsafe.Pointer(&a.view.entries[a.tag&uint32(len(a.view.entries)-1)]))
}

// Row asks for the row, and for the identifiers that are needed.
func (a *Ahead) Row(need Need) {
	v := a.view
	if v == nil {
		return
	}
	e := v.find(a.tag)
	slot, at := e.slot-1, e.text/pageGranules
	if e.slot == 0 || int(slot/rowChunk) >= len(v.rows) || int(at) >= len(v.pages) {
		return
	}
	page := v.pages[at] // read once: an empty page is taken away under the mutex
	if page == nil {
		return
	}
	a.r = &v.rows[slot/rowChunk][slot%rowChunk]
	fetchRow(a.r, &page[e.text%pageGranules*granule], need&NeedIDs != 0)
}

// Node asks for the place in the scheduler.
func (a *Ahead) Node(k *Kernel) {
	if a.r == nil {
		return
	}
	if a.node = k.sched.nodes.warm.at(a.r.node); a.node != nil {
		fetchLine(unsafe.Pointer(a.node))
	}
}

// Neighbours asks for the places beside it.
func (a *Ahead) Neighbours(k *Kernel) {
	if a.node == nil {
		return
	}
	for _, i := range [...]uint32{a.node.prev, a.node.next} { // of any moment
		if n := k.sched.nodes.warm.at(i); n != nil {
			fetchLine(unsafe.Pointer(n))
		}
	}
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
