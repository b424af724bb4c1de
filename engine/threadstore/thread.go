package threadstore

import (
	"hash/maphash"
	"slices"
	"sync"

	"trunkline/engine/journal"
)

// thread is one thread. mu is its serial writer. Of made only Participants changes, under mu, to
// another slice.
type thread struct {
	made threadMade

	mu      sync.Mutex
	watched *watched // nil: no watcher, and no change that one has to know of
	moved   bool     // updated is later than placed
	placed  int64    // where directory has the thread; guarded by directory.mu
	status  Status
	updated int64
	index   journal.Index // of the last change

	latest  uint64
	gone    uint64 // messages up to it were cut
	lastID  rawID
	lastAt  int64
	hot     []ref // of the messages up to latest, without a gap
	cursors map[string]*cursor
	unread  unread // its Number fields are unused
	loop    loop
	pending map[*webhook]*backlog // nil where webhooks have nothing to deliver
	quota   bucket
	batch   int  // of its messages that are being stored; guarded by storing
	cut     bool // rows behind the last stored message were removed; guarded by storing

	scratch struct { // of the records on hot paths
		message messagePosted
		cursor  cursorMoved
	}
}

func (t *thread) member(agent string) bool { return slices.Contains(t.made.Participants, agent) }

// forget drops from memory the first messages that f is true for. Caller holds mu.
func (t *thread) forget(f func(r *ref) bool) {
	n := 0
	for n < len(t.hot) && f(&t.hot[n]) {
		n++
	}
	if n > 0 {
		clear(t.hot[:n]) // it would keep segments, for as long as t is idle
		t.hot = t.hot[n:]
	}
	if len(t.hot) == 0 {
		t.hot = nil
	}
}

// forgetUpTo drops from memory the messages up to a number. Caller holds mu.
func (t *thread) forgetUpTo(last uint64) {
	seq := t.latest - uint64(len(t.hot))
	t.forget(func(*ref) bool { seq++; return seq <= last })
}

// View is a thread as get_thread shows it. Its slices are the thread's: nothing writes them.
type View struct {
	ID, Workspace, Title string
	Type                 Type
	Status               Status
	Participants         []string
	Created, Updated     int64 // milliseconds since 1970
}

// NewThread describes a thread that is to be created. Its slices are lent.
type NewThread struct {
	Title        []byte
	Type         Type
	Participants [][]byte
	// Key, if any, is the idempotency key, and Digest that of the payload.
	Key    []byte
	Digest [digestSize]byte
}

// Create makes a thread and returns its identifier (threads §4.1).
func (e *Engine) Create(a *Actor, n *NewThread, now int64) (id string, r Receipt, _ Refusal) {
	e.numbers.Lock()
	defer e.numbers.Unlock()
	var hash keyHash
	if len(n.Key) > 0 {
		hash = hashCreation(a.Workspace, a.Agent, n.Key)
		if t := e.numbers.made[hash]; t != nil && e.valid(t.made.At, now) {
			if string(t.made.Digest) != string(n.Digest[:]) {
				return "", r, Refusal{Code: KeyReused, Index: e.store.Appended()}
			}
			return t.made.ID, Receipt{Index: e.store.Appended(), At: t.made.At, Replay: true}, Refusal{}
		}
	}
	switch {
	case e.refuses():
		return "", r, Refusal{Code: NotStored}
	case len(e.numbers.list) >= e.cfg.MaxThreads:
		return "", r, Refusal{Code: TooMany}
	}
	raw := e.ids.next(nil, now)
	made := threadMade{
		Number: e.numbers.last + 1, At: now, ID: string(appendID(nil, threadPrefix, &raw)), Workspace: a.Workspace,
		Title: string(n.Title), Type: uint8(n.Type), Participants: make([]string, len(n.Participants)),
	}
	for i, p := range n.Participants {
		made.Participants[i] = string(p)
	}
	if len(n.Key) > 0 {
		made.Creator, made.Key, made.Digest = a.Agent, string(n.Key), slices.Clone(n.Digest[:]) // n is lent
	}
	made.Audit = a.audit("mcp.create_thread", made.ID, now)
	index := e.recordAudited(opThread, &made, &made.Audit)
	t := &thread{made: made, updated: now, index: index}
	e.link(t, hash)
	t.mu.Lock()
	e.changed(t, index, 1)
	t.mu.Unlock()
	return made.ID, Receipt{Index: index, At: now}, Refusal{}
}

// link puts a thread into the tables. Caller holds numbers.
func (e *Engine) link(t *thread, hash keyHash) {
	e.numbers.last = max(e.numbers.last, t.made.Number)
	e.numbers.list = append(e.numbers.list, t)
	if other := e.numbers.made[hash]; t.made.Key != "" && (other == nil || other.made.Number < t.made.Number) {
		e.numbers.made[hash] = t // a key names the latest thread; a snapshot has them in any order
	}
	s := &e.shards[maphash.String(e.seed, t.made.ID)%shards]
	s.mu.Lock()
	s.threads[t.made.ID] = t
	s.mu.Unlock()
	e.directory.add(t)
}

// valid reports whether a key that was used at a time is still known.
func (e *Engine) valid(at, now int64) bool { return e.cfg.KeyWindow == 0 || now < at+e.cfg.KeyWindow }

// Get returns a thread (threads §4.2). Any actor of its workspace may see it.
func (e *Engine) Get(a *Actor, id []byte) (v Summarized, index journal.Index, _ Refusal) {
	t, code := e.open(a, id, false)
	if code != OK {
		return v, 0, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	return t.summarized(a), t.index, Refusal{}
}

func (t *thread) view() View {
	return View{ID: t.made.ID, Workspace: t.made.Workspace, Title: t.made.Title, Type: Type(t.made.Type), Status: t.status,
		Participants: t.made.Participants, Created: t.made.At, Updated: t.updated}
}
