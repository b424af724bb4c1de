package threadstore

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/tidwall/btree"

	"trunkline/engine/journal"
)

// Bounds of a list of threads.
const (
	// listScan is how many threads a page of Threads examines at most: a filter that fits few of
	// them gives short pages.
	listScan = 4096
	// listSorted is up to how many threads of one agent are sorted for a page. The threads of an
	// agent with more are found among all of the workspace.
	listSorted = 4096
)

// directory has the threads of each workspace in the orders of their lists. Its mu is taken under
// the lock of a thread.
type directory struct {
	off        bool // while records are read: all threads are added behind them
	mu         sync.Mutex
	workspaces map[string]*workspace

	settling sync.Mutex // held while threads are brought to their places
	moving   sync.Mutex
	moved    []*thread // whose place is out of date
}

// workspace is the threads of one.
type workspace struct {
	created []*thread            // in the order of their numbers
	updated *btree.BTreeG[place] // by their last change
	agents  map[string][]*thread // by participant, in the order of created
}

// place is where a thread is among those of its workspace.
type place struct {
	at int64 // of the last change, or 0 in the order of creation
	t  *thread
}

func (p place) before(at int64, number uint64) bool {
	return p.at < at || p.at == at && p.t.made.Number < number
}

// add enters a thread that no request knows yet, with a larger number than those before.
func (d *directory) add(t *thread) {
	if d.off {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.workspaces[t.made.Workspace]
	if w == nil {
		less := func(a, b place) bool { return a.before(b.at, b.t.made.Number) }
		w = &workspace{updated: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), agents: map[string][]*thread{}}
		d.workspaces[t.made.Workspace] = w
	}
	w.created = insertThread(w.created, t)
	t.placed = t.updated
	w.updated.Set(place{t.placed, t})
	for _, agent := range t.made.Participants {
		w.agents[agent] = insertThread(w.agents[agent], t)
	}
}

func byNumber(t *thread, number uint64) int { return cmp.Compare(t.made.Number, number) }

// insertThread adds a thread to a list in the order of numbers, nearly always at its end.
func insertThread(list []*thread, t *thread) []*thread {
	at := len(list)
	if at > 0 && list[at-1].made.Number > t.made.Number {
		at, _ = slices.BinarySearchFunc(list, t.made.Number, byNumber)
	}
	return slices.Insert(list, at, t)
}

// touch notes that t.updated has changed. Caller holds t.mu.
func (d *directory) touch(t *thread) {
	if t.moved || d.off {
		return
	}
	t.moved = true
	d.moving.Lock()
	d.moved = append(d.moved, t)
	d.moving.Unlock()
}

// settle brings the threads that have changed to their places.
func (d *directory) settle() {
	d.settling.Lock()
	defer d.settling.Unlock()
	d.moving.Lock()
	moved := d.moved
	d.moved = nil
	d.moving.Unlock()
	for _, t := range moved {
		t.mu.Lock()
		t.moved = false
		at := t.updated
		d.mu.Lock()
		w := d.workspaces[t.made.Workspace]
		w.updated.Delete(place{t.placed, t})
		t.placed = at
		w.updated.Set(place{at, t})
		d.mu.Unlock()
		t.mu.Unlock()
	}
}

// join and leave change of which agents' lists t is a part. Caller holds t.mu.
func (d *directory) join(t *thread, agents []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, agent := range agents {
		w := d.workspaces[t.made.Workspace]
		w.agents[agent] = insertThread(w.agents[agent], t)
	}
}

func (d *directory) leave(t *thread, agents []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.workspaces[t.made.Workspace]
	for _, agent := range agents {
		list := w.agents[agent]
		if i, ok := slices.BinarySearchFunc(list, t.made.Number, byNumber); ok {
			list = slices.Delete(list, i, i+1)
		}
		if w.agents[agent] = list; len(list) == 0 {
			delete(w.agents, agent)
		}
	}
}

// Filter selects the threads of a list (threads §4.12).
type Filter struct {
	// Status and Type are those of the threads; negative: any.
	Status, Type int
	// Participant is one of theirs; empty: any.
	Participant string
	// Unread has threads with unread messages of the actor only.
	Unread bool
	// Created has them in the order of their creation, else in that of their last change; in both
	// the latest is the first one.
	Created bool
	Limit   int
	// After is the Next of the page before; zero for the first page.
	After Cursor
}

// Cursor is a place in a list of threads.
type Cursor struct {
	At     int64 // of the last change; 0 in the order of creation
	Number uint64
}

// Summarized is a thread in a list, and as get_thread shows it.
type Summarized struct {
	View
	// Latest is the number of the last message, Read that of the actor's cursor.
	Latest, Read uint64
	// Unread counts the messages behind Read, 0 where none of them is by another agent.
	Unread uint64
	// Reader is set where the actor is a participant, or has a cursor.
	Reader bool
}

// summarized is what an actor is shown of t. Caller holds t.mu.
func (t *thread) summarized(a *Actor) Summarized {
	s := Summarized{View: t.view(), Latest: t.latest}
	c := t.cursors[a.Agent]
	if c != nil {
		s.Read = c.seq
	}
	if t.unread.byOthers(a.Agent) > s.Read {
		s.Unread = t.latest - s.Read
	}
	s.Reader = c != nil || t.member(a.Agent)
	return s
}

// Threads returns a page of the threads of the actor's workspace. Where there are more, next is the
// cursor of the next page, which may be so for an empty page, too. index is what the journal has to
// be durable up to before the page is shown.
func (e *Engine) Threads(a *Actor, f *Filter) (list []Summarized, next Cursor, index journal.Index) {
	e.directory.settle()
	for scanned := 0; len(list) < f.Limit && scanned < listScan; {
		batch := e.directory.behind(a, f, min(listBatch, listScan-scanned))
		if len(batch) == 0 {
			return list, Cursor{}, index
		}
		scanned += len(batch)
		for _, p := range batch {
			if len(list) == f.Limit {
				return list, f.After, index
			}
			f.After = Cursor{p.at, p.t.made.Number}
			if s, at, ok := p.t.fits(a, f); ok {
				list, index = append(list, s), max(index, at)
			}
		}
	}
	if len(e.directory.behind(a, f, 1)) == 0 {
		return list, Cursor{}, index
	}
	return list, f.After, index
}

// fits returns t as it is shown, and the index of its last change, if a filter selects it.
func (t *thread) fits(a *Actor, f *Filter) (s Summarized, index journal.Index, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case a.Rank == Participant && !t.member(a.Agent),
		f.Participant != "" && !t.member(f.Participant),
		f.Status >= 0 && t.status != Status(f.Status),
		f.Type >= 0 && t.made.Type != uint8(f.Type):
		return s, 0, false
	}
	s = t.summarized(a)
	return s, t.index, !f.Unread || s.Unread > 0
}

// behind returns the next threads behind f.After, at most n, of which some may not fit.
func (d *directory) behind(a *Actor, f *Filter, n int) []place {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.workspaces[a.Workspace]
	if w == nil {
		return nil
	}
	agent := f.Participant
	if a.Rank == Participant {
		agent = a.Agent // of others it sees what it shares with them
	}
	of := w.created
	if agent != "" {
		of = w.agents[agent]
	}
	switch {
	case f.Created:
		end := len(of)
		if f.After.Number > 0 {
			end, _ = slices.BinarySearchFunc(of, f.After.Number, byNumber)
		}
		list := make([]place, 0, n)
		for i := end - 1; i >= 0 && len(list) < n; i-- {
			list = append(list, place{0, of[i]})
		}
		return list
	case agent != "" && len(of) <= listSorted:
		return sorted(of, f.After, n)
	}
	return w.latest(f.After, n)
}

// latest returns the threads that changed last before a cursor.
func (w *workspace) latest(after Cursor, n int) []place {
	list := make([]place, 0, n)
	take := func(p place) bool {
		if after.Number == 0 || p.before(after.At, after.Number) {
			list = append(list, p)
		}
		return len(list) < n
	}
	if after.Number == 0 {
		w.updated.Reverse(take)
		return list
	}
	// The thread of the cursor may have moved: a place that compares as it did stands for it.
	w.updated.Descend(place{after.At, &thread{made: threadMade{Number: after.Number}}}, take)
	return list
}

// sorted is latest for the threads of one agent.
func sorted(of []*thread, after Cursor, n int) []place {
	list := make([]place, 0, len(of))
	for _, t := range of {
		if p := (place{t.placed, t}); after.Number == 0 || p.before(after.At, after.Number) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.t.made.Number, a.t.made.Number))
	})
	return list[:min(n, len(list))]
}

// maxSince bounds the threads that Since finds.
const maxSince = 10_000

// Since calls f for the threads that the actor may read with the durable messages that are at most
// overlap milliseconds older than message seq of a thread: those behind number next up to end. Of
// that thread itself they are those behind seq. It may wait for a disk.
func (e *Engine) Since(a *Actor, id []byte, seq uint64, overlap int64, f func(thread string, next, end uint64)) Refusal {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return Refusal{Code: code}
	}
	at, err := e.createdAt(t, seq)
	t.mu.Unlock()
	if err != nil {
		return Refusal{Code: Failed, Err: err}
	}
	all := Filter{Status: -1, Type: -1}
	e.directory.settle()
	for n, p := range e.directory.behind(a, &all, maxSince+1) {
		if p.at < at-overlap {
			return Refusal{}
		}
		if n == maxSince {
			return Refusal{Code: TooMany}
		}
		next, end, err := e.rangeSince(a, p.t, at-overlap)
		if err != nil {
			return Refusal{Code: Failed, Err: err}
		}
		if p.t == t {
			next = seq
		}
		if next < end {
			f(p.t.made.ID, next, end)
		}
	}
	return Refusal{}
}

// rangeSince returns the number before the first message of t that is not older than a time, and
// that of the last durable one; of a thread that the actor may not read, an empty range.
func (e *Engine) rangeSince(a *Actor, t *thread, at int64) (next, end uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.Rank == Participant && !t.member(a.Agent) {
		return 0, 0, nil
	}
	end = t.visible(e.safe())
	n := sort.Search(int(end), func(i int) bool {
		created, bad := e.createdAt(t, uint64(i)+1)
		err = errors.Join(err, bad)
		return created >= at
	})
	return uint64(n), end, err
}

// createdAt returns when message seq was created; of one that does not exist, when the thread was
// made or has changed last. Caller holds t.mu.
func (e *Engine) createdAt(t *thread, seq uint64) (int64, error) {
	if seq == 0 {
		return t.made.At, nil
	}
	row, err := e.row(t, seq, nil)
	if err != nil || row == nil {
		return t.lastAt, err
	}
	m, err := parseRow(row)
	return m.created, err
}
