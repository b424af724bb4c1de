package keyindex

import (
	"runtime"
	"slices"
)

// batchBytes is about how much is put at a time.
const batchBytes = 1 << 20

// batch gathers rows for one Put.
type batch struct {
	x    *Index
	rows [][]byte // keys and values take turns
	buf  []byte   // all of them
	ends []int    // in buf; -1: a removed row has no value
}

// add appends a row. value appends it; nil removes the row.
func (b *batch) add(key, value func(dst []byte) []byte) {
	b.buf = key(b.buf)
	b.ends = append(b.ends, len(b.buf))
	if value == nil {
		b.ends = append(b.ends, -1)
		return
	}
	b.buf = value(b.buf)
	b.ends = append(b.ends, len(b.buf))
}

// state adds the row of a run.
func (b *batch) state(r *run, live bool) {
	r.live = live
	b.add(func(dst []byte) []byte { return b.x.appendRunKey(dst, r) }, r.appendRow)
}

// remove adds the row that has a run no longer count. Look-ups that have it do not see that.
func (b *batch) remove(r *run) {
	removed := *r
	b.state(&removed, false)
}

// write puts the rows.
func (b *batch) write() error {
	b.rows = b.rows[:0]
	start := 0
	for _, end := range b.ends {
		if end < 0 {
			b.rows = append(b.rows, nil)
			continue
		}
		b.rows = append(b.rows, b.buf[start:end:end])
		start = end
	}
	var err error
	if len(b.rows) > 0 {
		err = b.x.rows.Put(b.rows...)
	}
	clear(b.rows)
	b.buf, b.ends = b.buf[:0], b.ends[:0]
	return err
}

// begin makes a run for at most n entries. It does not count yet.
func (x *Index) begin(level uint8, n int, newest int64) (*run, error) {
	x.last++
	r := &run{id: x.last, level: level, pageBits: pageBitsFor(n), newest: newest, entries: uint64(n)}
	if size := len(newFilter(0)) + n*filterBits/8; x.filters+size <= x.budget {
		r.filter = newFilter(n)
		x.filters += len(r.filter)
	}
	x.out.state(r, false)
	return r, x.out.write()
}

// pageWriter writes the pages of a run. Entries come in the order of their hashes.
type pageWriter struct {
	x    *Index
	r    *run
	page uint32
	buf  []byte // of the page
}

func (w *pageWriter) add(e entry) error {
	if err := w.upTo(w.r.page(e)); err != nil {
		return err
	}
	w.buf = appendEntry(w.buf, e)
	if w.r.filter != nil {
		w.r.filter.add(e)
	}
	return nil
}

// upTo writes the pages before one.
func (w *pageWriter) upTo(page uint32) error {
	for ; w.page < page; w.page++ {
		w.x.out.add(func(dst []byte) []byte { return w.x.appendPartKey(dst, rowPage, w.r, w.page) },
			func(dst []byte) []byte { return append(dst, w.buf...) })
		w.buf = w.buf[:0]
		runtime.Gosched() // a core may have to write the journal
		if len(w.x.out.buf) >= batchBytes {
			if err := w.x.out.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// close writes what is left and has the run replace those it was made of.
func (w *pageWriter) close(from []*run) error {
	if err := w.upTo(w.r.pages()); err != nil {
		return err
	}
	x, part := w.x, uint32(0)
	for rest := w.r.filter; len(rest) > 0; part++ {
		n := min(len(rest), filterPart)
		x.out.add(func(dst []byte) []byte { return x.appendPartKey(dst, rowFilter, w.r, part) },
			func(dst []byte) []byte { return append(dst, rest[:n]...) })
		rest = rest[n:]
		if len(x.out.buf) >= batchBytes {
			if err := x.out.write(); err != nil {
				return err
			}
		}
	}
	x.out.state(w.r, true)
	live := make([]*run, 0, len(*x.runs.Load())+1)
	for _, r := range *x.runs.Load() {
		if slices.Contains(from, r) {
			x.out.remove(r)
		} else {
			live = append(live, r)
		}
	}
	live = append(live, w.r)
	slices.SortFunc(live, compareRuns)
	return x.publish(live, from)
}
