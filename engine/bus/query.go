package bus

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// maxQueryID bounds a query id in bytes (kernel-ipc §6).
const maxQueryID = 40

// AnswerStatus is how a query ended.
type AnswerStatus uint8

// The ends of a query (kernel-ipc §5.5).
const (
	Answered  AnswerStatus = iota // the handler replied
	TimedOut                      // the deadline passed
	Cancelled                     // the handler is gone, the caller cancelled, or the server drains
)

// Answer is the result of a query. Result and Error are set only with Answered, and lent for the
// call.
type Answer struct {
	Status    AnswerStatus
	Success   bool
	Result    []byte // as the handler encoded it
	Error     []byte
	TimeoutMS int64 // the query's timeout in milliseconds
}

// Caller gets the end of its query: QueryDone is called exactly once per accepted query, from any
// goroutine, with no bus lock held, possibly before Bus.Query has returned. It must not block. A
// QueryDone that began before Forget may still run when Forget returns.
type Caller interface{ QueryDone(q *Query, a Answer) }

// Query is one accepted query. It stays valid, and its methods harmless, after it is done.
type Query struct {
	id        string
	bus       *Bus
	caller    Caller
	deadline  time.Time
	timeoutMS int64

	// The fields below are guarded by queryTable.mu.
	handler *Stream
	index   int // place in the heap of deadlines
	pending bool
}

// Query sends a query to the handler of typ (kernel-ipc §4.17). build appends the chunk body, which
// contains id, to m.Body; it runs on the caller's goroutine, without a lock, before the query is
// visible, and must keep neither argument. The deadline is timeout from now.
//
// With outcome Sent, p.QueryDone is called exactly once unless Forget comes first; it may run
// before Query has returned. Every other outcome returns nil and never calls p. The order of checks
// is NoHandler, TooManyQueries, TooLarge, BufferFull.
func (b *Bus) Query(typ []byte, timeout time.Duration, p Caller, build func(m *Message, id []byte)) (*Query, Outcome) {
	deadline := time.Now().Add(timeout)
	h := b.registry.handler(QueryHandler, typ)
	if h == nil {
		return nil, NoHandler
	}
	if b.queries.full() {
		// A full server refuses before it encodes; admit checks again under its lock.
		return nil, TooManyQueries
	}
	q := &Query{bus: b, caller: p, handler: h, deadline: deadline, timeoutMS: timeout.Milliseconds()}
	q.id = b.queries.nextID()
	m := b.NewMessage(0)
	build(m, []byte(q.id))
	outcome, wake := b.queries.admit(q, m, m.charge())
	m.Release()
	if wake != nil {
		wake.Wake()
	}
	if outcome != Sent {
		return nil, outcome
	}
	return q, Sent
}

// Cancel ends the query for its caller: QueryDone(Cancelled) is called before Cancel returns. It
// reports false, and calls nothing, when the query was done already.
func (q *Query) Cancel() bool {
	if !q.bus.queries.finish(q) {
		return false
	}
	q.done(Answer{Status: Cancelled})
	return true
}

// Forget drops the query without QueryDone, and frees its slot: its caller's connection is gone.
func (q *Query) Forget() { q.bus.queries.finish(q) }

func (q *Query) done(a Answer) {
	a.TimeoutMS = q.timeoutMS
	q.caller.QueryDone(q, a)
}

func cancelAll(queries []*Query) {
	for _, q := range queries {
		q.done(Answer{Status: Cancelled})
	}
}

// Reply answers a query (kernel-ipc §4.21). It counts only if the query is pending and was given to
// p; the first one wins. result and errText are lent to QueryDone, which has run when Reply
// returns.
func (b *Bus) Reply(p Port, queryID []byte, success bool, result, errText []byte) (delivered bool) {
	q := b.queries.answer(p, queryID)
	if q == nil {
		return false
	}
	b.counters.executed.Add(1)
	q.done(Answer{Status: Answered, Success: success, Result: result, Error: errText})
	return true
}

// queryTable holds the pending queries. A query is pending exactly while it is in byID, in
// deadlines and in its handler's asked set. What removes it under mu calls its caller.
type queryTable struct {
	mu        sync.Mutex
	byID      map[string]*Query
	deadlines deadlines
	capacity  int
	shutDown  bool

	timer *time.Timer // nil until the first query
	armed time.Time   // when timer fires; zero while it is not armed

	seq    atomic.Uint64
	suffix string
	owns   func(id string) bool // Config.OwnsQuery
}

func (t *queryTable) init(capacity int, owns func(string) bool) {
	t.byID = make(map[string]*Query)
	t.capacity, t.owns = capacity, owns
	var random [8]byte
	rand.Read(random[:])
	t.suffix = "-" + hex.EncodeToString(random[:])
}

// nextID is at most 1 + 13 + 17 bytes long. The random part distinguishes the ids of two servers.
func (t *queryTable) nextID() string {
	var buf [maxQueryID]byte
	for {
		b := strconv.AppendUint(append(buf[:0], 'q'), t.seq.Add(1), 36)
		if id := string(append(b, t.suffix...)); t.owns == nil || t.owns(id) {
			return id
		}
	}
}

func (t *queryTable) pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

func (t *queryTable) full() bool { return t.pending() >= t.capacity }

// admit makes q pending and gives m to its handler, or does neither. Both happen under mu: a
// handler that closes refuses m or finds q among its queries, and no reply comes before q is known.
func (t *queryTable) admit(q *Query, m *Message, may admission) (Outcome, Port) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shutDown {
		return NoHandler, nil
	}
	if len(t.byID) >= t.capacity {
		return TooManyQueries, nil
	}
	m.refs.Add(1)
	v, wake := q.handler.offer(m, may)
	if v != taken {
		m.unref(1)
		return outcomeOf[v], nil
	}
	q.pending = true
	t.byID[q.id] = q
	if q.handler.asked == nil {
		q.handler.asked = make(map[*Query]struct{})
	}
	q.handler.asked[q] = struct{}{}
	t.deadlines.push(q)
	t.arm(q.bus)
	return Sent, wake
}

// remove takes the pending q out of every index. The caller holds mu.
func (t *queryTable) remove(q *Query) {
	q.pending = false
	delete(t.byID, q.id)
	delete(q.handler.asked, q)
	t.deadlines.remove(q.index)
	q.handler = nil
}

// finish removes q and reports whether it was pending.
func (t *queryTable) finish(q *Query) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !q.pending {
		return false
	}
	t.remove(q)
	return true
}

// answer removes and returns the pending query id that was given to p, nil if there is none.
func (t *queryTable) answer(p Port, id []byte) *Query {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.byID[string(id)]
	if q == nil || !q.handler.belongsTo(p) {
		return nil
	}
	t.remove(q)
	return q
}

// abandon removes and returns the unanswered queries of the closed stream s.
func (t *queryTable) abandon(s *Stream) []*Query {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := make([]*Query, 0, len(s.asked))
	for q := range s.asked {
		left = append(left, q)
	}
	for _, q := range left {
		t.remove(q)
	}
	s.asked = nil
	return left
}

// shut removes and returns all pending queries. Afterwards none is admitted and no timer is armed.
func (t *queryTable) shut() []*Query {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shutDown = true
	if t.timer != nil {
		t.timer.Stop()
	}
	return t.drain()
}

// drain removes and returns every pending query. The caller holds mu.
func (t *queryTable) drain() []*Query {
	all := make([]*Query, 0, len(t.byID))
	for len(t.deadlines) > 0 {
		q := t.deadlines[0]
		t.remove(q)
		all = append(all, q)
	}
	return all
}

// deadlines is a binary min-heap of the pending queries by deadline; Query.index is a query's place
// in it. All methods need queryTable.mu.
type deadlines []*Query

func (d *deadlines) push(q *Query) {
	q.index = len(*d)
	*d = append(*d, q)
	d.up(q.index)
}

// remove takes the query at place i out.
func (d *deadlines) remove(i int) {
	last := len(*d) - 1
	d.swap(i, last)
	(*d)[last] = nil
	*d = (*d)[:last]
	if i < last {
		d.down(i)
		d.up(i)
	}
}

func (d *deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(i, parent) {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

func (d *deadlines) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(*d) {
			return
		}
		if child+1 < len(*d) && d.before(child+1, child) {
			child++
		}
		if !d.before(child, i) {
			return
		}
		d.swap(i, child)
		i = child
	}
}

func (d *deadlines) before(i, j int) bool { return (*d)[i].deadline.Before((*d)[j].deadline) }

func (d *deadlines) swap(i, j int) {
	h := *d
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// arm makes the one timer fire no later than the earliest deadline. An earlier timer stays: it
// finds nothing due and arms itself again, which costs less than moving it with every answered
// query. The caller holds mu.
func (t *queryTable) arm(b *Bus) {
	if len(t.deadlines) == 0 {
		return
	}
	earliest := t.deadlines[0].deadline
	if !t.armed.IsZero() && !earliest.Before(t.armed) {
		return
	}
	t.armed = earliest
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(earliest), b.expire)
		return
	}
	t.timer.Reset(time.Until(earliest))
}

// expire ends the queries whose deadline has come. It runs on the timer's goroutine.
func (b *Bus) expire() {
	for _, q := range b.queries.due(b, time.Now()) {
		q.done(Answer{Status: TimedOut})
	}
}

// due removes and returns the queries whose deadline is not after now, and arms the timer again.
func (t *queryTable) due(b *Bus, now time.Time) []*Query {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = time.Time{}
	var late []*Query
	for len(t.deadlines) > 0 && !t.deadlines[0].deadline.After(now) {
		q := t.deadlines[0]
		t.remove(q)
		late = append(late, q)
	}
	t.arm(b)
	return late
}
