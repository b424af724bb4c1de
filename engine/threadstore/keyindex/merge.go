package keyindex

import "slices"

// merge makes one run of several, a few pages at a time.
type merge struct {
	from []*run // oldest first
	ins  []reader
	out  pageWriter
}

// reader reads the entries of a run in order.
type reader struct {
	r    *run
	next uint32 // page
	page []byte
	at   int // entry of page behind head
	head entry
	some bool // head is one
}

// Step does some of the work that waits: it merges about as many entries as budget, or removes
// pages of as many. more reports that there is more.
func (x *Index) Step(budget int) (more bool, err error) {
	for budget > 0 && err == nil {
		var n int
		switch {
		case x.merge != nil:
			n, err = x.mergePage()
		case len(x.gone) > 0:
			n, err = x.removePages()
		default:
			if more, err = x.beginMerge(); !more || err != nil {
				return false, err
			}
		}
		budget -= n
	}
	return true, err
}

// beginMerge begins to merge the oldest runs of the lowest level that has enough of them.
func (x *Index) beginMerge() (begun bool, err error) {
	runs := *x.runs.Load()
	for end := len(runs); end > 0; {
		start, n := end, 0
		for start > 0 && runs[start-1].level == runs[end-1].level {
			start--
		}
		if end-start < fanOut {
			end = start
			continue
		}
		m := &merge{from: slices.Clone(runs[start : start+fanOut])}
		var newest int64
		for _, r := range m.from {
			m.ins = append(m.ins, reader{r: r})
			n += int(r.entries)
			newest = max(newest, r.newest)
		}
		r, err := x.begin(m.from[0].level+1, n, newest)
		m.out = pageWriter{x: x, r: r}
		x.merge = m
		return true, err
	}
	return false, nil
}

// mergePage makes the next page and returns how many entries it has at most.
func (x *Index) mergePage() (n int, err error) {
	m := x.merge
	if m.out.page == m.out.r.pages() {
		x.merge = nil
		return pageEntries, m.out.close(m.from)
	}
	for ; ; n++ {
		e, ok, err := m.next(x)
		if err != nil {
			return n, err
		}
		if !ok || m.out.r.page(e) != m.out.page {
			return n + 1, m.out.upTo(m.out.page + 1)
		}
		if err := m.out.add(e); err != nil {
			return n, err
		}
		for i := range m.ins {
			if in := &m.ins[i]; in.some && compareHashes(in.head, e) == 0 {
				in.some = false
			}
		}
	}
}

// next returns the entry that comes next, without taking it: the latest one of its hash.
func (m *merge) next(x *Index) (e entry, ok bool, err error) {
	for i := len(m.ins) - 1; i >= 0; i-- {
		in := &m.ins[i]
		if err := in.fill(x); err != nil {
			return e, false, err
		}
		if in.some && (!ok || compareHashes(in.head, e) < 0) {
			e, ok = in.head, true
		}
	}
	return e, ok, nil
}

// fill has head be the next entry, if there is one and it is not there already.
func (in *reader) fill(x *Index) (err error) {
	for !in.some {
		if in.at*entryBytes == len(in.page) {
			if in.next == in.r.pages() {
				return nil
			}
			var key [2 + 8 + 4]byte
			if in.page, err = x.readPage(in.page[:0], x.appendPartKey(key[:0], rowPage, in.r, in.next)); err != nil {
				return err
			}
			in.next, in.at = in.next+1, 0
			continue
		}
		in.head, in.some = entryAt(in.page, in.at), true
		in.at++
	}
	return nil
}

// removePages removes rows of a run that does not count, and returns of how many entries they are.
func (x *Index) removePages() (n int, err error) {
	r := x.gone[0]
	for _, kind := range []byte{rowFilter, rowPage} {
		lower, upper := x.appendPartKey(nil, kind, r, 0), x.appendPartKey(nil, kind, r, ^uint32(0))
		rows := 0
		err := x.rows.Scan(lower, upper, false, func(key, _ []byte) bool {
			x.out.add(func(dst []byte) []byte { return append(dst, key...) }, nil)
			rows++
			return rows < removeRows
		})
		if err != nil {
			return 0, err
		}
		if rows > 0 {
			return rows * pageEntries / 4, x.out.write()
		}
	}
	x.out.add(func(dst []byte) []byte { return x.appendRunKey(dst, r) }, nil)
	x.gone = x.gone[1:]
	return 1, x.out.write()
}

// removeRows is how many rows of a run are removed at a time.
const removeRows = 256
