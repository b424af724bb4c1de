package threadstore

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/threadstore/summary"
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
	// First is the number of the first message that is kept.
	First uint64
	// Cold is set where the page needs rows that are not in memory and the caller does not wait:
	// nothing was appended.
	Cold bool
	// Index is what the journal has to be durable up to before the page is shown.
	Index journal.Index
}

// Frame is what stands around each message of a page.
type Frame struct {
	// Before appends what precedes message seq.
	Before func(dst []byte, seq uint64) []byte
	After  []byte
	// Bytes bounds the page, but for its first message.
	Bytes int
}

// Read appends the messages after since, at most limit, as elements of a JSON array (threads §4.4).
// Messages that are not durable are not there, but for those that the actor has seen. With wait it
// reads what is not in memory. A page from memory does not allocate if dst has room.
func (e *Engine) Read(a *Actor, id []byte, since uint64, limit int, wait bool, dst []byte) (_ []byte, p Page, _ Refusal) {
	return e.ReadFramed(a, id, since, limit, wait, nil, dst)
}

// ReadFramed is Read with other text than commas around the messages.
func (e *Engine) ReadFramed(a *Actor, id []byte, since uint64, limit int, wait bool, f *Frame, dst []byte) (_ []byte, p Page, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return dst, p, Refusal{Code: code}
	}
	latest := t.visible(max(e.safe(), a.Seen))
	p.Next = max(min(since, latest), t.gone)
	start, last := len(dst), min(latest, p.Next+uint64(limit))
	for full := false; ; t.mu.Lock() {
		if p.First = t.gone + 1; p.Next < t.gone { // cut meanwhile: a page has no gap
			dst, p.Next, last = dst[:start], t.gone, max(last, t.gone)
		}
		var err error
		var cold uint64
		dst, full, cold, err = t.readHot(dst, start, &p, last, f)
		t.mu.Unlock()
		if cold > 0 && err == nil {
			if !wait {
				return dst, Page{Cold: true}, Refusal{}
			}
			dst, p, full, err = e.readRows(t, dst, start, p, cold, f)
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
func (t *thread) readHot(dst []byte, start int, p *Page, last uint64, f *Frame) (_ []byte, full bool, cold uint64, err error) {
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
		if dst, full = m.appendToPage(dst, start, p.Next+1, f); !full {
			p.Next, p.Index = p.Next+1, max(p.Index, r.index)
		}
	}
	return dst, full, 0, nil
}

// appendToPage appends message seq to a page that begins at start. full reports that it has no
// room.
func (m *message) appendToPage(dst []byte, start int, seq uint64, f *Frame) (_ []byte, full bool) {
	end := len(dst)
	if f != nil {
		dst = append(m.appendJSON(f.Before(dst, seq), seq), f.After...)
		if end > start && len(dst)-start > f.Bytes {
			return dst[:end], true
		}
		return dst, false
	}
	if end == start {
		return m.appendJSON(dst, seq), false
	}
	if dst = m.appendJSON(append(dst, ','), seq); len(dst)-start > pageBytes {
		return dst[:end], true
	}
	return dst, false
}

// readRows is readHot for rows. Messages do not change, so it holds no lock.
func (e *Engine) readRows(t *thread, dst []byte, start int, p Page, last uint64, f *Frame) (_ []byte, _ Page, full bool, err error) {
	err = e.eachRow(t, p.Next+1, last, func(_ uint64, m *message) bool {
		if dst, full = m.appendToPage(dst, start, p.Next+1, f); !full {
			p.Next++
		}
		return !full
	})
	return dst, p, full, err
}

// eachRow calls f with the messages from first to last, all of which are stored, until it returns
// false. Messages that are cut meanwhile may be missing.
func (e *Engine) eachRow(t *thread, first, last uint64, f func(seq uint64, m *message) bool) error {
	var bad error
	err := e.scanStored(t.made.Number, first, last, func(seq uint64, row []byte) bool {
		first = seq + 1
		var m message
		m, bad = parseRow(row)
		return bad == nil && f(seq, &m)
	})
	if err == errLostRow {
		t.mu.Lock()
		if t.gone >= first {
			err = nil
		}
		t.mu.Unlock()
	}
	return errors.Join(err, bad)
}

// listBatch is how many threads List takes per hold of the lock of the table.
const listBatch = 256

// Listed is a thread as operators see it, of any workspace.
type Listed struct {
	View
	// Number is its place in the order of creation, from 1 on, Latest the number of its last
	// message.
	Number, Latest uint64
}

// List calls visit for the threads that were made before the one of a number, 0 for all, newest
// first, until visit returns false. No lock is held: visit may be slow.
func (e *Engine) List(before uint64, visit func(*Listed) bool) {
	for {
		batch := e.numbers.before(before)
		for _, t := range batch {
			if l := t.listed(); !visit(&l) {
				return
			}
		}
		if len(batch) < listBatch {
			return
		}
		before = batch[len(batch)-1].made.Number
	}
}

// Show returns a thread of any workspace. ok is false if there is none.
func (e *Engine) Show(id []byte) (l Listed, ok bool) {
	t := e.find(id)
	if t == nil {
		return l, false
	}
	return t.listed(), true
}

func (t *thread) listed() Listed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Listed{t.view(), t.made.Number, t.latest}
}

// before returns the threads before a number, 0 for the end, latest first, at most listBatch.
func (n *numbers) before(number uint64) []*thread {
	n.Lock()
	defer n.Unlock()
	end := len(n.list)
	if number > 0 {
		end = n.search(number)
	}
	batch := slices.Clone(n.list[max(0, end-listBatch):end])
	slices.Reverse(batch)
	return batch
}

// after returns the threads after a number, first ones first, at most limit.
func (n *numbers) after(number uint64, limit int) []*thread {
	n.Lock()
	defer n.Unlock()
	at := n.search(number + 1)
	return slices.Clone(n.list[at:min(len(n.list), at+limit)])
}

// search returns where in the list the first thread from a number on is. Caller holds the lock.
func (n *numbers) search(number uint64) int {
	at, _ := slices.BinarySearchFunc(n.list, number, func(t *thread, number uint64) int { return cmp.Compare(t.made.Number, number) })
	return at
}

// sort puts the list into the order of numbers, which a snapshot does not have.
func (n *numbers) sort() {
	n.Lock()
	defer n.Unlock()
	slices.SortFunc(n.list, func(a, b *thread) int { return cmp.Compare(a.made.Number, b.made.Number) })
}

// maxWindows is how many windows are in memory at a time: one of events with the longest metadata
// takes 256 MB.
const maxWindows = 4

// Summary is what a thread is about.
type Summary struct {
	summary.Summary
	// Status is that of the thread.
	Status Status
	// Index is what the journal has to be durable up to before it is shown.
	Index journal.Index
}

// Summarize returns the summary of the last messages of a thread, at most n (threads §4.7). It may
// wait for a disk, and for other summaries.
func (e *Engine) Summarize(a *Actor, id []byte, n int) (s Summary, _ Refusal) {
	e.windows <- struct{}{}
	defer func() { <-e.windows }()
	w, ref := e.window(a, id, n)
	if ref.Code != OK {
		return s, ref
	}
	return Summary{summary.Summarize(w.messages, w.latest, w.status.String()), w.status, w.index}, Refusal{}
}

// window is the end of a thread: what a summary looks at.
type window struct {
	messages []summary.Message
	latest   uint64 // number of the last message
	status   Status // of the thread
	index    journal.Index
}

func (e *Engine) window(a *Actor, id []byte, n int) (w window, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return w, Refusal{Code: code}
	}
	w.latest, w.status, w.index = t.visible(max(e.safe(), a.Seen)), t.status, t.index
	first := max(w.latest-min(w.latest, uint64(n)), t.gone) + 1
	start := t.latest - uint64(len(t.hot)) + 1 // of what is in memory: it stays while it is referred to
	var hot []ref
	if start <= w.latest {
		hot = slices.Clone(t.hot[max(first, start)-start : w.latest-start+1])
	}
	t.mu.Unlock()
	w.messages = make([]summary.Message, 0, w.latest-first+1)
	var body []byte
	add := func(seq uint64, m *message) bool {
		var text summary.Message
		text, body = m.summarized(seq, body)
		w.messages = append(w.messages, text)
		return true
	}
	if last := min(w.latest, start-1); first <= last {
		if err := e.eachRow(t, first, last, add); err != nil {
			return w, Refusal{Code: Failed, Err: err}
		}
	}
	for i := range hot {
		m, err := parseRow(hot[i].row())
		if err != nil {
			return w, Refusal{Code: Failed, Err: err}
		}
		add(w.latest-uint64(len(hot)-1-i), &m)
	}
	return w, Refusal{}
}

// summarized returns what a summary reads of message seq. buf is for it to use.
func (m *message) summarized(seq uint64, buf []byte) (s summary.Message, _ []byte) {
	buf = jsonx.AppendUnescaped(buf[:0], m.body)
	s = summary.Message{Seq: seq, ID: string(appendID(nil, messagePrefix, &m.id)), Sender: string(m.sender), Kind: m.kind.String(), Body: summary.Clip(buf)}
	if m.kind != Chat {
		s.Metadata = slices.Clone(m.metadata)
	}
	if m.replies {
		s.InReplyTo = string(appendID(nil, messagePrefix, &m.reply))
	}
	return s, buf
}
