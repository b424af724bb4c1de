// Package keyindex finds the message of an idempotency key among very many of them (threads §4.3).
//
// An entry is a hash and a number. New entries wait in memory, where their owner finds them by
// itself, until Seal sorts them into a run, which is never changed. When fanOut runs have the same
// level, Step merges them into one of the next level, so that there are few runs and each entry is
// written a few times. A run is cut into pages by the first bits of the hash, so a look-up reads
// one page. A filter in memory answers for most of the runs that do not have the hash.
//
// Rows, all of which begin with a byte of the index:
//
//	r run:8           -> state:1 level:1 page bits:1 newest:8 entries:8; it counts if state is 1
//	p run:8 page:4    -> entries in the order of their hashes, 24 bytes each
//	f run:8 part:4    -> a part of the run's filter
//
// A run counts from the batch on that has its row with state 1. In that batch the runs that it
// replaces get state 0. Rows of runs that do not count are removed by Step, after a crash too.
package keyindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Rows is where the index keeps its runs. Slices are lent.
type Rows interface {
	// Get appends the value of key to dst.
	Get(dst, key []byte) (value []byte, ok bool, err error)
	// Scan calls f with the rows from lower to before upper, until f returns false.
	Scan(lower, upper []byte, reverse bool, f func(key, value []byte) bool) error
	// Put writes rows, all or none: keys and values take turns. A nil value removes the row.
	Put(rows ...[]byte) error
}

const (
	// sealAt is how many entries wait in memory before Seal is due.
	sealAt = 256 << 10
	// fanOut is how many runs of a level are merged into one of the next.
	fanOut = 8
	// filterBudget bounds the bytes of the filters in memory. Runs beyond it read a page instead.
	filterBudget = 64 << 20
)

// Hash names a key. Its bits are evenly distributed.
type Hash [16]byte

// entry is a hash in two parts and its number.
type entry struct{ high, low, number uint64 }

func newEntry(h *Hash, number uint64) entry {
	return entry{binary.BigEndian.Uint64(h[:]), binary.BigEndian.Uint64(h[8:]), number}
}

func compareHashes(a, b entry) int {
	switch {
	case a.high != b.high:
		if a.high < b.high {
			return -1
		}
		return 1
	case a.low != b.low:
		if a.low < b.low {
			return -1
		}
		return 1
	}
	return 0
}

// Index finds numbers by hashes. Add and Find may be called from any goroutine, everything else
// from one at a time.
type Index struct {
	rows    Rows
	prefix  byte
	budget  int
	runs    atomic.Pointer[[]*run] // live ones, oldest first
	last    uint64                 // number of a run
	recent  recent
	pages   sync.Pool // of *[]byte: pages that Find reads
	sorted  []entry   // of the run that Seal makes
	merge   *merge
	gone    []*run // their pages are to be removed
	filters int    // bytes
	out     batch
}

// New returns an empty index, whose rows begin with prefix. Load comes before the first look-up.
func New(prefix byte) *Index {
	x := &Index{prefix: prefix, budget: filterBudget}
	x.runs.Store(new([]*run))
	x.out.x = x
	return x
}

// Load takes the runs that rows has, in place of those that it took before. What is not a run of
// the index is an error.
func (x *Index) Load(rows Rows) error {
	x.rows, x.last, x.gone, x.filters = rows, 0, nil, 0
	var live []*run
	var bad error
	err := rows.Scan([]byte{x.prefix, rowRun}, []byte{x.prefix, rowRun + 1}, false, func(key, value []byte) bool {
		var r *run
		if r, bad = parseRun(key, value); bad != nil {
			return false
		}
		x.last = max(x.last, r.id)
		if r.live {
			live = append(live, r)
		} else {
			x.gone = append(x.gone, r)
		}
		return true
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	slices.SortFunc(live, compareRuns)
	for _, r := range live {
		if err := x.loadFilter(r); err != nil {
			return err
		}
	}
	x.runs.Store(&live)
	return nil
}

// Add notes an entry that is later than those of the same hash before. Its number is not 0. at is a
// time, for Expire. It may be called from any goroutine.
func (x *Index) Add(h *Hash, number uint64, at int64) {
	e := newEntry(h, number)
	x.recent.add(&e, at)
}

// Full reports that Seal is due.
func (x *Index) Full() bool { return x.recent.count.Load() >= sealAt }

// Seal makes a run of the entries that are in none.
func (x *Index) Seal() error {
	var newest int64
	if x.sorted, newest = x.recent.freeze(x.sorted[:0]); len(x.sorted) == 0 {
		return nil
	}
	r, err := x.begin(0, len(x.sorted), newest)
	if err != nil {
		return err
	}
	w := pageWriter{x: x, r: r}
	for _, e := range x.sorted {
		if err := w.add(e); err != nil {
			return err
		}
	}
	if err := w.close(nil); err != nil {
		return err
	}
	x.recent.drop()
	return nil
}

// Find calls f with the numbers of a hash, the latest first, until f returns false. It may read a
// page of a run.
func (x *Index) Find(h *Hash, f func(number uint64) bool) error {
	e := newEntry(h, 0)
	if !x.recent.find(&e, f) {
		return nil
	}
	for tried := false; ; tried = true {
		runs := x.runs.Load()
		err := x.find(*runs, e, f)
		// Pages of a run that was merged meanwhile are removed.
		if errors.Is(err, errNoPage) && (x.runs.Load() != runs || !tried) {
			continue
		}
		return err
	}
}

func (x *Index) find(runs []*run, e entry, f func(number uint64) bool) error {
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if !r.filter.has(e) {
			continue
		}
		number, ok, err := r.find(x, e)
		if err != nil {
			return err
		}
		if ok && !f(number) {
			return nil
		}
	}
	return nil
}

// Expire removes runs none of whose entries is later than a time.
func (x *Index) Expire(until int64) error {
	var left, over []*run
	for _, r := range *x.runs.Load() {
		if r.newest <= until && (x.merge == nil || !slices.Contains(x.merge.from, r)) {
			over = append(over, r)
		} else {
			left = append(left, r)
		}
	}
	if len(over) == 0 {
		return nil
	}
	for _, r := range over {
		x.out.remove(r)
	}
	return x.publish(left, over)
}

// publish writes the batch, which changes which runs count, and then has look-ups use live. Pages
// of the runs in gone are removed later.
func (x *Index) publish(live, gone []*run) error {
	if err := x.out.write(); err != nil {
		return err
	}
	x.runs.Store(&live)
	for _, r := range gone {
		x.filters -= len(r.filter)
	}
	x.gone = append(x.gone, gone...)
	return nil
}

// Stats are numbers of an index.
type Stats struct {
	// Runs and Entries count what is sealed, Recent what is not. FilterBytes is the memory of the
	// filters.
	Runs, Entries, Recent, FilterBytes int
}

// Stats returns the numbers. It may be called from any goroutine.
func (x *Index) Stats() (s Stats) {
	runs := *x.runs.Load()
	s.Runs, s.Recent = len(runs), int(x.recent.count.Load())
	for _, r := range runs {
		s.Entries += int(r.entries)
		s.FilterBytes += len(r.filter)
	}
	return s
}

var (
	errBadRun = errors.New("cannot read the index of idempotency keys")
	errNoPage = fmt.Errorf("%w: a page is missing", errBadRun)
)
