package threads

import (
	"bytes"
	"errors"

	"trunkline/engine/journal"
)

// errLostRow means that a message which memory does not have is not in the rows either.
var errLostRow = errors.New("a stored message is missing")

func compareIDs(a, b *rawID) int { return bytes.Compare(a[:], b[:]) }

// visible returns the number of the last message that is durable up to bound. Caller holds mu.
func (t *thread) visible(bound journal.Index) uint64 {
	seq := t.latest
	for i := len(t.hot) - 1; i >= 0 && t.hot[i].index > bound; i-- {
		seq--
	}
	return seq
}

// Page is what Read found.
type Page struct {
	// Next is the number to go on after, More whether there are messages behind it.
	Next uint64
	More bool
	// Cold is set where the page needs rows that are not in memory and the caller does not wait:
	// nothing was appended.
	Cold bool
	// Index is what the journal has to be durable up to before the page is shown.
	Index journal.Index
}

// Read appends the messages after since, at most limit, as elements of a JSON array (threads §4.4).
// Messages that are not durable are not there, but for those that the actor has seen. With wait it
// reads what is not in memory. A page from memory does not allocate if dst has room.
func (e *Engine) Read(a *Actor, id []byte, since uint64, limit int, wait bool, dst []byte) (_ []byte, p Page, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return dst, p, Refusal{Code: code}
	}
	latest := t.visible(max(e.safe(), a.Seen))
	p.Next = min(since, latest)
	start, last := len(dst), min(latest, p.Next+uint64(limit))
	for full := false; ; t.mu.Lock() {
		var err error
		var cold uint64
		dst, full, cold, err = t.readHot(dst, start, &p, last)
		t.mu.Unlock()
		if cold > 0 && err == nil {
			if !wait {
				return dst, Page{Cold: true}, Refusal{}
			}
			dst, p, full, err = e.readRows(t, dst, start, p, cold)
		}
		if err != nil {
			return dst[:start], p, Refusal{Code: Failed, Err: err}
		}
		if p.Next == last || full {
			p.More = p.Next < latest
			return dst, p, Refusal{}
		}
	}
}

// readHot appends the messages behind p.Next up to last to the page that begins at start, if they
// are in memory; else cold is the last one to read from the rows. full reports that the page has no
// more room. Caller holds mu.
func (t *thread) readHot(dst []byte, start int, p *Page, last uint64) (_ []byte, full bool, cold uint64, err error) {
	first := t.latest - uint64(len(t.hot)) + 1
	if p.Next < last && p.Next+1 < first {
		return dst, false, min(last, first-1), nil
	}
	for p.Next < last && !full {
		r := &t.hot[p.Next+1-first]
		var m message
		if m, err = parseRow(r.row()); err != nil {
			return dst, false, 0, err
		}
		if dst, full = m.appendToPage(dst, start, p.Next+1); !full {
			p.Next, p.Index = p.Next+1, max(p.Index, r.index)
		}
	}
	return dst, full, 0, nil
}

// appendToPage appends message seq to a page that begins at start. full reports that it has no
// room.
func (m *message) appendToPage(dst []byte, start int, seq uint64) (_ []byte, full bool) {
	end := len(dst)
	if end == start {
		return m.appendJSON(dst, seq), false
	}
	if dst = m.appendJSON(append(dst, ','), seq); len(dst)-start > pageBytes {
		return dst[:end], true
	}
	return dst, false
}

// readRows is readHot for rows. Messages do not change, so it holds no lock.
func (e *Engine) readRows(t *thread, dst []byte, start int, p Page, last uint64) (_ []byte, _ Page, full bool, err error) {
	err = e.eachRow(t, p.Next+1, last, func(m *message) bool {
		if dst, full = m.appendToPage(dst, start, p.Next+1); !full {
			p.Next++
		}
		return !full
	})
	return dst, p, full, err
}

// eachRow calls f with the messages from first to last, all of which are stored, until it returns
// false.
func (e *Engine) eachRow(t *thread, first, last uint64, f func(*message) bool) error {
	var bad error
	err := e.scanStored(t.made.Number, first, last, func(_ uint64, row []byte) bool {
		var m message
		m, bad = parseRow(row)
		return bad == nil && f(&m)
	})
	return errors.Join(err, bad)
}
