package bus

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// caller notes how its queries ended.
type caller struct {
	mu   sync.Mutex
	ends map[*Query][]string
}

func (c *caller) QueryDone(q *Query, a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = make(map[*Query][]string)
	}
	status := [...]string{Answered: "answered", TimedOut: "timeout", Cancelled: "cancelled"}[a.Status]
	end := fmt.Sprintf("%s %v %q %q %d", status, a.Success, a.Result, a.Error, a.TimeoutMS)
	c.ends[q] = append(c.ends[q], end)
}

func (c *caller) end(q *Query) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.ends[q], ", ")
}

func (c *caller) want(t *testing.T, why string, q *Query, want string) {
	t.Helper()
	if got := c.end(q); got != want {
		t.Errorf("%s: ended %q, want %q", why, got, want)
	}
}

// ask sends a query whose chunk body is its id.
func ask(b *Bus, typ string, timeout time.Duration, c Caller) (*Query, Outcome) {
	return b.Query([]byte(typ), timeout, c, func(m *Message, id []byte) { m.Body = append(m.Body, id...) })
}

func mustAsk(t *testing.T, b *Bus, typ string, timeout time.Duration, c Caller) *Query {
	t.Helper()
	q, outcome := ask(b, typ, timeout, c)
	if outcome != Sent {
		t.Fatalf("Query(%s): outcome %d", typ, outcome)
	}
	return q
}

func reply(b *Bus, p Port, q *Query, result string) bool {
	return b.Reply(p, []byte(q.id), true, []byte(result), nil)
}

func TestQueryAnswered(t *testing.T) {
	b, p, c := newBus(t, Config{}), &port{}, &caller{}
	h, _ := b.Handle(QueryHandler, p, []string{"sum"}, 0)
	q := mustAsk(t, b, "sum", 2*time.Second, c)
	wantPop(t, "the chunk carries the id", h, q.id)
	if b.Reply(&port{}, []byte(q.id), true, nil, nil) {
		t.Error("a reply from another connection was delivered")
	}
	if b.Reply(p, []byte("q0"), true, nil, nil) {
		t.Error("a reply to an unknown query was delivered")
	}
	if !b.Reply(p, []byte(q.id), false, []byte("3"), []byte("odd")) {
		t.Error("the reply was not delivered")
	}
	if reply(b, p, q, "4") || q.Cancel() {
		t.Error("a finished query was ended again")
	}
	c.want(t, "the first reply wins", q, `answered false "3" "odd" 2000`)
	if got := b.Stats(); got.QueriesExecuted != 1 || got.PendingQueries != 0 {
		t.Errorf("stats = %+v", got)
	}
}

func TestQueryRefusals(t *testing.T) {
	b := newBus(t, Config{QueryCapacity: 2, StreamBufferEvents: 1, MaxBody: 64})
	c := &caller{}
	f := func(why, typ string, want Outcome) *Query {
		t.Helper()
		q, got := ask(b, typ, time.Second, c)
		if got != want || (q != nil) != (want == Sent) {
			t.Errorf("%s: %v, outcome %d, want %d", why, q, got, want)
		}
		return q
	}
	f("nobody there", "a", NoHandler)
	h, _ := b.Handle(QueryHandler, &port{}, []string{"a"}, 0)
	b.Handle(QueryHandler, &port{}, []string{"narrow"}, 64)
	b.Handle(CommandHandler, &port{}, []string{"cmd"}, 0)
	f("a command handler answers no queries", "cmd", NoHandler)
	f("too large", "narrow", TooLarge)
	q := f("first", "a", Sent)
	f("handler buffer full", "a", BufferFull)
	popAll(h)
	f("at the capacity", "a", Sent)
	f("over the capacity, also too large", "narrow", TooManyQueries)
	f("existence before limits", "nobody", NoHandler)
	q.Cancel()
	f("a slot is free, the buffer is full", "a", BufferFull)
	popAll(h)
	f("a slot is free", "a", Sent)
	h.Discard()
	if got := b.Stats(); got.PendingQueries != 0 || got.BufferedBytes != 0 || got.QueriesExecuted != 0 {
		t.Errorf("stats = %+v", got)
	}
}

func TestQueryDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p, c := newBus(t, Config{}), &port{}, &caller{}
		b.Handle(QueryHandler, p, []string{"a"}, 0)
		start := time.Now()
		until := func(d time.Duration) {
			time.Sleep(d - time.Since(start))
			synctest.Wait()
		}
		late := mustAsk(t, b, "a", 500*time.Millisecond, c)
		early := mustAsk(t, b, "a", 20*time.Millisecond, c)
		answered := mustAsk(t, b, "a", 10*time.Millisecond, c)
		reply(b, p, answered, "1")
		until(19 * time.Millisecond)
		c.want(t, "just before its deadline", early, "")
		until(20 * time.Millisecond)
		c.want(t, "at its deadline", early, `timeout false "" "" 20`)
		c.want(t, "the later one waits", late, "")
		if reply(b, p, early, "late") {
			t.Error("a late reply was delivered")
		}
		between := mustAsk(t, b, "a", 100*time.Millisecond, c)
		until(120 * time.Millisecond)
		c.want(t, "an earlier deadline moves the timer", between, `timeout false "" "" 100`)
		until(500 * time.Millisecond)
		c.want(t, "the last one", late, `timeout false "" "" 500`)
		c.want(t, "answered once", answered, `answered true "1" "" 10`)
		now := mustAsk(t, b, "a", 0, c)
		synctest.Wait()
		c.want(t, "no time at all", now, `timeout false "" "" 0`)
	})
}

func TestQueryEndings(t *testing.T) {
	const cancelled = `cancelled false "" "" 1000`
	f := func(why, want string, end func(b *Bus, h *Stream, q *Query)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			t.Helper()
			b, p, c := newBus(t, Config{QueryCapacity: 1}), &port{}, &caller{}
			h, _ := b.Handle(QueryHandler, p, []string{"a"}, 0)
			b.Handle(QueryHandler, p, []string{"b"}, 0)
			q := mustAsk(t, b, "a", time.Second, c)
			end(b, h, q)
			c.want(t, why, q, want)
			if got := b.Stats().PendingQueries; got != 0 {
				t.Errorf("%s: %d queries pending", why, got)
			}
			if reply(b, p, q, "late") || q.Cancel() {
				t.Errorf("%s: ended twice", why)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			c.want(t, why+", later", q, want)
		})
	}
	f("handler detached", cancelled, func(_ *Bus, h *Stream, _ *Query) { h.Detach() })
	f("handler discarded", cancelled, func(_ *Bus, h *Stream, _ *Query) { h.Discard() })
	f("caller cancels", cancelled, func(_ *Bus, _ *Stream, q *Query) { q.Cancel() })
	f("caller forgets", "", func(_ *Bus, _ *Stream, q *Query) { q.Forget() })
	f("close", cancelled, func(b *Bus, _ *Stream, _ *Query) { b.Close() })
}

func TestDetachCancelsOnlyItsOwnQueries(t *testing.T) {
	b, p, c := newBus(t, Config{}), &port{}, &caller{}
	ha, _ := b.Handle(QueryHandler, p, []string{"a"}, 0)
	b.Handle(QueryHandler, p, []string{"b"}, 0)
	qa, qb := mustAsk(t, b, "a", time.Hour, c), mustAsk(t, b, "b", time.Hour, c)
	ha.Detach()
	c.want(t, "of the detached stream", qa, `cancelled false "" "" 3600000`)
	c.want(t, "of the other one", qb, "")
	if !reply(b, p, qb, "1") {
		t.Error("the other stream's query was lost")
	}
}

func TestQueryAfterClose(t *testing.T) {
	b := New(Config{})
	b.Handle(QueryHandler, &port{}, []string{"a"}, 0)
	b.Close()
	b.Close()
	if q, outcome := ask(b, "a", time.Second, &caller{}); q != nil || outcome != NoHandler {
		t.Errorf("after Close: %v, outcome %d, want NoHandler", q, outcome)
	}
	wantBuffered(t, b, 0)
}

func TestQueryIDs(t *testing.T) {
	b, other := newBus(t, Config{}), newBus(t, Config{})
	seen := make(map[string]bool)
	b.queries.seq.Store(1<<64 - 2000)
	for range 3000 {
		id := b.queries.nextID()
		if seen[id] || len(id) > maxQueryID {
			t.Fatalf("id %q of %d bytes, seen before: %v", id, len(id), seen[id])
		}
		seen[id] = true
	}
	if b.queries.suffix == other.queries.suffix {
		t.Error("two servers share their ids")
	}
	own := newBus(t, Config{OwnsQuery: func(id string) bool { return id[1] == 'z' }})
	for range 10 {
		if id := own.queries.nextID(); id[1] != 'z' {
			t.Errorf("the bus gave %s, which it does not own", id)
		}
	}
}

// answerAtOnce replies from inside Wake: the answer arrives before Query has returned.
type answerAtOnce struct {
	b *Bus
	s *Stream
}

func (p *answerAtOnce) Wake() {
	for m := p.s.Pop(); m != nil; m = p.s.Pop() {
		p.b.Reply(p, m.Body, true, []byte("now"), nil)
		m.Release()
	}
}

func TestAnswerBeforeQueryReturns(t *testing.T) {
	b, c := newBus(t, Config{}), &caller{}
	p := &answerAtOnce{b: b}
	p.s, _ = b.Handle(QueryHandler, p, []string{"a"}, 0)
	q := mustAsk(t, b, "a", time.Second, c)
	c.want(t, "answered inside Wake", q, `answered true "now" "" 1000`)
}
