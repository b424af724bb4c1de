//go:build !race

package kernel

import (
	"hash/maphash"
	"sync/atomic"
)

// maxWarm is how many look-ups Warm has in flight at a time: about what a core's reorder window can overlap.
const maxWarm = 16

// warmFrom is the size of one shard's index, in entries, from which on fetching ahead pays: a table of some 25,000 rows over 64
// shards. Smaller tables stay in a core's second-level cache, where waiting costs less than asking twice.
const warmFrom = 1024

// warmView is what Warm may read of a shard without its mutex: slice headers that are replaced, never changed.
type warmView struct {
	entries []entry
	rows    []*[rowChunk]row
	pages   []*[pageSize]byte
}

// warmed is the published view; see Warm.
type warmed struct{ view atomic.Pointer[warmView] }

// publish renews the view after a change that may have moved a slice. Caller holds the shard's mutex.
func (w *warmed) publish(s *shard) {
	v := w.view.Load()
	if v != nil && len(v.entries) == len(s.index.entries) && len(v.rows) == len(s.rows) && len(v.pages) == len(s.texts.pages) {
		return
	}
	w.view.Store(&warmView{s.index.entries, s.rows, s.texts.pages})
}

// Warm brings the rows of pids towards the processor, so that operations on them, which follow one after the other, do not each
// wait for memory. It changes nothing and its outcome means nothing: it reads single words without a lock, only to have
// touched them, through slice headers that are published whole. The loads of different pids overlap, which is the point:
// at a million rows they are most of what a request costs. Race builds leave it out.
func (k *Kernel) Warm(pids [][]byte) (sum uint32) {
	if v := k.shards[0].warm.view.Load(); v == nil || len(v.entries) < warmFrom {
		return 0 // one shard is as full as the others
	}
	var found [maxWarm]entry
	var views [maxWarm]*warmView
	pids = pids[:min(len(pids), maxWarm)]
	for i, pid := range pids {
		h := maphash.Bytes(k.seed, pid)
		if v := k.shards[h&uint64(len(k.shards)-1)].warm.view.Load(); v != nil {
			found[i], views[i] = v.find(uint32(h>>32)), v
		}
	}
	for i := range pids {
		if e := found[i]; e.slot != 0 {
			sum += views[i].touch(e)
		}
	}
	return sum
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

// touch loads a word of each line that a look-up needs: of the row and of the identifiers.
func (v *warmView) touch(e entry) (sum uint32) {
	if slot := e.slot - 1; int(slot/rowChunk) < len(v.rows) {
		r := &v.rows[slot/rowChunk][slot%rowChunk]
		sum = r.node + uint32(r.quota[0])
	}
	page, off := e.text/pageGranules, e.text%pageGranules*granule
	if int(page) < len(v.pages) {
		if p := v.pages[page]; p != nil {
			sum += uint32(p[off]) + uint32(p[(off+64)%pageSize])
		}
	}
	return sum
}
