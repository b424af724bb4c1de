package bus

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// item is what the model expects a Pop to return: a body, or a gap marker of lost events.
type item struct {
	body *modelBody
	lost uint64
}

type modelBody struct {
	text    string
	size    int64 // of memory
	holders int
}

type modelStream struct {
	named     int64
	kind      Kind
	types     []string
	patterns  []string
	overhead  int
	live      bool
	signalled bool
	wakes     int64
	items     []item

	port *port
	real *Stream
}

type modelQuery struct {
	handler  *modelStream
	deadline time.Time
	want     string // how it must have ended; "" while pending or forgotten
	pending  bool
	real     *Query
}

// model is the bus written plainly: slices, one goroutine, no sharing tricks.
type model struct {
	cfg     Config
	bus     *Bus
	caller  *caller
	streams []*modelStream
	queries []*modelQuery
	bodies  []*modelBody
	want    Stats
}

var (
	modelTypes    = rapid.SampledFrom([]string{"a", "b", "a.b"})
	modelPatterns = rapid.SampledFrom([]string{"*", ">", "a", "a.*", "a.>", "*.b", "*.*"})
)

// takes reports whether an event or a message of this type is for the stream.
func (s *modelStream) takes(typ string) bool {
	return slices.Contains(s.types, typ) ||
		slices.ContainsFunc(s.patterns, func(p string) bool { return modelMatches(p, typ) })
}

func (m *model) handlerOf(kind Kind, typ string) *modelStream {
	for _, s := range m.streams {
		if s.live && s.kind == kind && s.takes(typ) {
			return s
		}
	}
	return nil
}

func (m *model) total() (n int64) {
	for _, b := range m.bodies {
		if b.holders > 0 {
			n += b.size
		}
	}
	return n
}

func (s *modelStream) waiting() (entries int, bytes int64) {
	for _, it := range s.items {
		if it.body != nil {
			entries++
			bytes += int64(len(it.body.text))
		}
	}
	return entries, bytes
}

func (s *modelStream) signal() {
	if !s.signalled {
		s.signalled = true
		s.wakes++
	}
}

// offer is the rule of kernel-ipc §4.18 and §4.20 for one stream; total includes the body, counted
// once.
func (m *model) offer(s *modelStream, b *modelBody, total int64) Outcome {
	entries, bytes := s.waiting()
	outcome := Sent
	switch {
	case len(b.text)+s.overhead > m.cfg.MaxBody:
		outcome = TooLarge
	case entries == m.cfg.StreamBufferEvents,
		bytes+int64(len(b.text)) > m.cfg.StreamBufferBytes,
		total > m.cfg.StreamBufferTotalBytes,
		total > m.cfg.StreamBufferTotalBytes-m.cfg.StreamBufferTotalBytes/reserved && s.signalled:
		outcome = BufferFull
	}
	switch {
	case outcome == Sent:
		s.items = append(s.items, item{body: b})
		b.holders++
		s.signal()
	case s.kind == Subscription:
		m.want.DroppedEvents++
		if n := len(s.items); n > 0 && s.items[n-1].lost > 0 {
			s.items[n-1].lost++
		} else {
			s.items = append(s.items, item{lost: 1})
		}
		s.signal()
	}
	return outcome
}

// pop returns what the next Pop must return, "" for nil.
func (m *model) pop(s *modelStream) string {
	for len(s.items) > 0 {
		it := s.items[0]
		s.items = s.items[1:]
		if it.body != nil {
			it.body.holders--
			return it.body.text
		}
		if marker := string(gapText(nil, it.lost)); len(marker)+s.overhead <= m.cfg.MaxBody {
			return marker
		}
	}
	s.signalled = false
	return ""
}

func (m *model) end(q *modelQuery, want string) {
	q.pending, q.want = false, want
	m.want.PendingQueries--
}

func (m *model) expire() {
	for _, q := range m.queries {
		if q.pending && !q.deadline.After(time.Now()) {
			m.end(q, `timeout false "" "" `+fmt.Sprint(q.real.timeoutMS))
		}
	}
}

func (m *model) body(t *rapid.T) *modelBody {
	sizes := rapid.OneOf(rapid.IntRange(4, 14), rapid.IntRange(120, 140)) // of two classes of buffers
	b := &modelBody{text: fmt.Sprintf("%0*d", sizes.Draw(t, "size"), len(m.bodies))}
	m.bodies = append(m.bodies, b)
	return b
}

// message makes b's message, whose buffer may be larger than b needs: it comes from a pool.
func (m *model) message(b *modelBody) *Message {
	msg := message(m.bus, b.text)
	b.size = int64(cap(msg.Body)) + perMessage
	return msg
}

func (m *model) someStream(t *rapid.T) *modelStream {
	if len(m.streams) == 0 {
		t.Skip("no stream")
	}
	return rapid.SampledFrom(m.streams).Draw(t, "stream")
}

func (m *model) someQuery(t *rapid.T) *modelQuery {
	if len(m.queries) == 0 {
		t.Skip("no query")
	}
	return rapid.SampledFrom(m.queries).Draw(t, "query")
}

func (m *model) open(t *rapid.T) {
	s := &modelStream{
		kind:     Kind(rapid.IntRange(0, 2).Draw(t, "kind")),
		types:    rapid.SliceOfN(modelTypes, 1, 3).Draw(t, "types"),
		overhead: rapid.SampledFrom([]int{0, 8, 145}).Draw(t, "overhead"),
		live:     true,
		port:     &port{},
	}
	want := ""
	for _, typ := range s.types {
		if s.kind != Subscription && m.handlerOf(s.kind, typ) != nil {
			want = typ
			break
		}
	}
	if s.kind == Subscription {
		s.patterns = rapid.SliceOfN(modelPatterns, 0, 3).Draw(t, "patterns")
	}
	s.named = nameBytes(s.types) + nameBytes(s.patterns)
	full := m.want.NameBytes+s.named > m.cfg.SubscriptionNameBytes ||
		len(s.patterns) > 0 && m.want.Patterns+distinct(s.patterns) > int64(m.cfg.MaxEventPatterns)
	var taken string
	if len(s.patterns) > 0 {
		s.real, _ = m.bus.subscribePatterns(s.port, s.types, s.patterns, s.overhead)
	} else {
		s.real, taken = m.bus.Handle(s.kind, s.port, s.types, s.overhead)
	}
	if taken != want || (s.real == nil) != (want != "" || full) {
		t.Fatalf("Handle: taken %q, want %q; no room %v", taken, want, full)
	}
	if s.real == nil {
		return
	}
	m.want.NameBytes += s.named
	m.want.Patterns += distinct(s.patterns)
	m.streams = append(m.streams, s)
	if s.kind == Subscription {
		m.want.ActiveSubscribers++
	}
}

func distinct(names []string) (n int64) {
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			n++
		}
	}
	return n
}

func nameBytes(types []string) (n int64) {
	for i, typ := range types {
		if !slices.Contains(types[:i], typ) {
			n += int64(len(typ) + nameCost)
		}
	}
	return n
}

func (m *model) detach(s *modelStream) {
	if s.live && s.kind == Subscription {
		m.want.ActiveSubscribers--
	}
	if s.live {
		m.want.NameBytes -= s.named
		m.want.Patterns -= distinct(s.patterns)
	}
	s.live = false
	for _, q := range m.queries {
		if q.pending && q.handler == s {
			m.end(q, fmt.Sprintf(`cancelled false "" "" %d`, q.real.timeoutMS))
		}
	}
}

func (m *model) publish(t *rapid.T) {
	typ, b := modelTypes.Draw(t, "type"), m.body(t)
	msg := m.message(b)
	total, want := m.total()+b.size, 0
	for _, s := range m.streams {
		if s.live && s.kind == Subscription && s.takes(typ) && m.offer(s, b, total) == Sent {
			want++
		}
	}
	m.want.EventsPublished++
	if got := m.bus.Publish([]byte(typ), msg); got != want {
		t.Fatalf("delivered %d, want %d", got, want)
	}
}

func (m *model) send(t *rapid.T) {
	typ, b, want := modelTypes.Draw(t, "type"), m.body(t), NoHandler
	msg := m.message(b)
	if h := m.handlerOf(CommandHandler, typ); h != nil {
		want = m.offer(h, b, m.total()+b.size)
	}
	if want == Sent {
		m.want.CommandsSent++
	}
	if got := m.bus.Send([]byte(typ), msg); got != want {
		t.Fatalf("Send: outcome %d, want %d", got, want)
	}
}

func (m *model) query(t *rapid.T) {
	typ, b, want := modelTypes.Draw(t, "type"), m.body(t), NoHandler
	timeout := time.Duration(rapid.IntRange(1, 50).Draw(t, "timeout")) * time.Millisecond
	h := m.handlerOf(QueryHandler, typ)
	q, got := m.bus.Query([]byte(typ), timeout, m.caller, func(msg *Message, _ []byte) {
		msg.Body = append(msg.Body, b.text...)
		b.size = int64(cap(msg.Body)) + perMessage
	})
	switch {
	case h == nil:
	case m.want.PendingQueries == int64(m.cfg.QueryCapacity):
		want = TooManyQueries
	default:
		want = m.offer(h, b, m.total()+b.size)
	}
	if got != want {
		t.Fatalf("Query: outcome %d, want %d", got, want)
	}
	if want == Sent {
		m.want.PendingQueries++
		m.queries = append(m.queries, &modelQuery{handler: h, deadline: time.Now().Add(timeout), pending: true, real: q})
	}
}

func (m *model) reply(t *rapid.T) {
	q, s := m.someQuery(t), m.someStream(t)
	want := q.pending && q.handler == s
	if got := reply(m.bus, s.port, q.real, "r"); got != want {
		t.Fatalf("Reply: delivered %v, want %v", got, want)
	}
	if want {
		m.want.QueriesExecuted++
		m.end(q, fmt.Sprintf(`answered true "r" "" %d`, q.real.timeoutMS))
	}
}

func (m *model) cancel(t *rapid.T) {
	q := m.someQuery(t)
	want := q.pending
	if got := q.real.Cancel(); got != want {
		t.Fatalf("Cancel = %v, want %v", got, want)
	}
	if want {
		m.end(q, fmt.Sprintf(`cancelled false "" "" %d`, q.real.timeoutMS))
	}
}

func (m *model) forget(t *rapid.T) {
	q := m.someQuery(t)
	q.real.Forget()
	if q.pending {
		m.end(q, "")
	}
}

func (m *model) check(t *rapid.T) {
	if m.want.BufferedBytes = m.total(); m.want.BufferedBytes > m.cfg.StreamBufferTotalBytes {
		t.Fatalf("%d bytes held of %d", m.want.BufferedBytes, m.cfg.StreamBufferTotalBytes)
	}
	if got := m.bus.Stats(); got != m.want {
		t.Fatalf("stats = %+v, want %+v", got, m.want)
	}
	for i, s := range m.streams {
		if got := s.real.Pending(); got != (len(s.items) > 0) {
			t.Fatalf("stream %d: pending %v, want %d items", i, got, len(s.items))
		}
		if got := s.port.wakes.Load(); got != s.wakes {
			t.Fatalf("stream %d: woken %d times, want %d", i, got, s.wakes)
		}
	}
	for i, q := range m.queries {
		if got := m.caller.end(q.real); got != q.want {
			t.Fatalf("query %d: ended %q, want %q", i, got, q.want)
		}
	}
	for _, typ := range []string{"a", "b", "a.b"} {
		for kind := Subscription; kind <= QueryHandler; kind++ {
			if got, want := m.bus.HasHandler(kind, []byte(typ)), m.handlerOf(kind, typ) != nil; got != want {
				t.Fatalf("HasHandler(%d, %s) = %v, want %v", kind, typ, got, want)
			}
		}
	}
}

func (m *model) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"open":     m.open,
		"publish":  m.publish,
		"publish2": m.publish,
		"send":     m.send,
		"query":    m.query,
		"reply":    m.reply,
		"cancel":   m.cancel,
		"forget":   m.forget,
		"pop": func(t *rapid.T) {
			s := m.someStream(t)
			for range rapid.IntRange(1, 4).Draw(t, "pops") {
				if got, want := popN(s.real, 1), m.pop(s); got != want {
					t.Fatalf("popped %q, want %q", got, want)
				}
			}
		},
		"detach": func(t *rapid.T) {
			s := m.someStream(t)
			s.real.Detach()
			m.detach(s)
		},
		"discard": func(t *rapid.T) {
			s := m.someStream(t)
			s.real.Discard()
			m.detach(s)
			for _, it := range s.items {
				if it.body != nil {
					it.body.holders--
				}
			}
			s.items = nil
		},
		"sleep": func(t *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 30).Draw(t, "ms")) * time.Millisecond)
			synctest.Wait()
			m.expire()
		},
		"": m.check,
	})
}

func TestBusAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			StreamBufferEvents:     rapid.IntRange(1, 5).Draw(rt, "StreamBufferEvents"),
			StreamBufferBytes:      int64(rapid.IntRange(10, 300).Draw(rt, "StreamBufferBytes")),
			StreamBufferTotalBytes: int64(held * rapid.IntRange(1, 12).Draw(rt, "StreamBufferTotalBytes")),
			QueryCapacity:          rapid.IntRange(1, 4).Draw(rt, "QueryCapacity"),
			MaxEventPatterns:       rapid.IntRange(1, 6).Draw(rt, "Patterns"),
			SubscriptionNameBytes:  int64((nameCost + 1) * rapid.IntRange(3, 12).Draw(rt, "NameBytes")),
			MaxBody:                150,
			GapBody:                gapText,
		}
		// rapid stops a failing run by a panic, which has to leave the bubble's goroutine.
		var stopped any
		synctest.Test(t, func(*testing.T) {
			defer func() { stopped = recover() }()
			m := &model{cfg: cfg, bus: New(cfg), caller: &caller{}}
			defer m.bus.Close()
			m.run(rt)
		})
		if stopped != nil {
			panic(stopped)
		}
	})
}
