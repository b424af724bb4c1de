//go:build !race

package kernel

import (
	"hash/maphash"
	"sync/atomic"
)

// maxWarm is how many look-ups Warm has in flight at a time: about what a core's reorder window can overlap.
const maxWarm = 16

// warmView is what Warm may read of a shard without its mutex: slice headers that are replaced, never changed.
type warmView struct {
	entries []uint64
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
	var slots [maxWarm]*row
	var views [maxWarm]*warmView
	pids = pids[:min(len(pids), maxWarm)]
	for i, pid := range pids {
		h := maphash.Bytes(k.seed, pid)
		if v := k.shards[h&uint64(len(k.shards)-1)].warm.view.Load(); v != nil {
			slots[i], views[i] = v.row(uint32(h>>32)), v
		}
	}
	for i := range pids {
		if r := slots[i]; r != nil {
			sum += views[i].touch(r)
		}
	}
	return sum
}

// row returns the first row whose tag matches, nil if none does near its home.
func (v *warmView) row(tag uint32) *row {
	mask := uint32(len(v.entries) - 1)
	for n := uint32(0); n < 8 && len(v.entries) > 0; n++ {
		e := v.entries[(tag+n)&mask]
		if e == 0 {
			return nil
		}
		if uint32(e>>32) == tag {
			if slot := uint32(e) - 1; int(slot/rowChunk) < len(v.rows) {
				return &v.rows[slot/rowChunk][slot%rowChunk]
			}
			return nil
		}
	}
	return nil
}

// touch loads a word of each line that a look-up needs: the row's, and where its identifiers begin.
func (v *warmView) touch(r *row) uint32 {
	sum := uint32(r.quota[0])
	page, off := r.text/pageGranules, r.text%pageGranules*granule
	if int(page) < len(v.pages) {
		if p := v.pages[page]; p != nil {
			sum += uint32(p[off]) + uint32(p[(off+64)%pageSize])
		}
	}
	return sum
}
