package bus

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	eventTag = 'e'
	gapTag   = 'g'
)

func binaryGap(dst []byte, dropped uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, gapTag), dropped)
}

// reader pops one stream whenever it is woken, as an event loop would.
type reader struct {
	wake   chan struct{}
	stream *Stream
	last   [4]uint64 // last number seen of each publisher
	events uint64
	gaps   uint64
}

func newReader() *reader { return &reader{wake: make(chan struct{}, 1)} }

func (r *reader) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take pops until nil, or only up to budget messages when budget is positive, and reports whether
// it saw nil.
func (r *reader) take(t *testing.T, budget int) (drained bool) {
	for n := 0; budget <= 0 || n < budget; n++ {
		m := r.stream.Pop()
		if m == nil {
			return true
		}
		number := binary.BigEndian.Uint64(m.Body[1:])
		if m.Body[0] == gapTag {
			r.gaps += number
		} else {
			publisher := m.Body[9]
			if number <= r.last[publisher] {
				t.Errorf("publisher %d: event %d after %d", publisher, number, r.last[publisher])
			}
			r.last[publisher] = number
			r.events++
		}
		m.Release()
	}
	return false
}

// run reads until want events are accounted for. It depends on wake-ups alone, so a lost one makes
// the test hang.
func (r *reader) run(t *testing.T, want uint64) {
	for r.events+r.gaps < want {
		<-r.wake
		for !r.take(t, 7) {
		}
	}
}

// Publishers and subscribers at once: for every subscriber popped events + gap counts = published
// events, each publisher's order is kept, no wake-up is lost and no message leaks.
func TestConcurrentAccounting(t *testing.T) {
	const publishers, subscribers, each = 4, 6, 3000
	b := New(Config{StreamBufferEvents: 50, StreamBufferTotalBytes: 200 * held, GapBody: binaryGap})
	defer b.Close()
	readers := make([]*reader, subscribers)
	var wg sync.WaitGroup
	for i := range readers {
		r := newReader()
		readers[i] = r
		r.stream = b.Subscribe(r, []string{"a", "b"}, 10)
		wg.Go(func() { r.run(t, publishers*each) })
	}
	var delivered atomic.Int64
	for p := range publishers {
		wg.Go(func() {
			types := [][]byte{[]byte("a"), []byte("b")}
			for i := range uint64(each) {
				m := b.NewMessage(0)
				m.Body = append(m.Body, eventTag)
				m.Body = binary.BigEndian.AppendUint64(m.Body, i+1)
				m.Body = append(m.Body, byte(p))
				delivered.Add(int64(b.Publish(types[i%2], m)))
			}
		})
	}
	wg.Wait()
	var events, gaps int64
	for i, r := range readers {
		if got := r.events + r.gaps; got != publishers*each {
			t.Errorf("reader %d: %d events + %d lost, want %d", i, r.events, r.gaps, publishers*each)
		}
		events, gaps = events+int64(r.events), gaps+int64(r.gaps)
	}
	st := b.Stats()
	if events != delivered.Load() || gaps != st.DroppedEvents || st.EventsPublished != publishers*each || st.BufferedBytes != 0 {
		t.Errorf("popped %d of %d delivered, lost %d, stats %+v", events, delivered.Load(), gaps, st)
	}
}

// TestConcurrentTotal: publishers, senders and callers of queries that share the total never hold
// more than it together, every stream drops what does not fit, and the whole of the total is there
// again in the end.
func TestConcurrentTotal(t *testing.T) {
	const publishers, each, most = 4, 500, 16 * held
	b := New(Config{StreamBufferTotalBytes: most, GapBody: binaryGap})
	defer b.Close()
	idle := b.Subscribe(&port{}, []string{"a"}, 0) // takes what it can and is not read
	r := newReader()
	r.stream = b.Subscribe(r, []string{"a"}, 0)
	h, _ := b.Handle(CommandHandler, &port{}, []string{"a"}, 0)
	var reading, writing sync.WaitGroup
	reading.Go(func() { r.run(t, publishers*each) })
	for p := range publishers {
		writing.Go(func() {
			for i := range uint64(each) {
				m := b.NewMessage(0)
				m.Body = append(m.Body, eventTag)
				m.Body = binary.BigEndian.AppendUint64(m.Body, i+1)
				m.Body = append(m.Body, byte(p))
				b.Publish([]byte("a"), m)
				b.Send([]byte("a"), message(b, "command"))
				if got := b.Stats().BufferedBytes; got < 0 || got > most {
					t.Errorf("%d bytes held of %d", got, most)
				}
				if i%100 == 0 {
					popN(h, 1)
					popN(idle, 1)
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
	popAll(idle)
	popAll(h)
	wantBuffered(t, b, 0)
	for range 15 {
		wantDelivered(t, "the whole total is free", publish(b, "a", "x"), 2)
	}
	wantDelivered(t, "one more", publish(b, "a", "x"), 0)
	popAll(idle)
	popAll(r.stream)
}

// Streams that come and go while others publish: nothing leaks, nothing arrives after Discard.
func TestConcurrentChurn(t *testing.T) {
	const rounds = 400
	b := New(Config{StreamBufferEvents: 8, GapBody: binaryGap})
	defer b.Close()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range rounds {
				publish(b, "a", "event")
				publish(b, "b", "event")
				b.Send([]byte("cmd"), message(b, "command"))
				_ = b.Wants("a") && i%2 == 0
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			for i := range rounds {
				s := b.Subscribe(&port{}, []string{"a", "b"}, 0)
				popN(s, 3)
				if h, _ := b.Handle(CommandHandler, &port{}, []string{"cmd", "other"}, 0); h != nil {
					popN(h, 3)
					h.Detach()
					popAll(h)
				}
				if i%2 == 0 {
					s.Detach()
					popAll(s)
				} else {
					s.Discard()
				}
				if s.Pending() {
					t.Error("something waits in a stream that is gone")
				}
			}
		})
	}
	wg.Wait()
	if st := b.Stats(); st.BufferedBytes != 0 || st.ActiveSubscribers != 0 || registered(b) != 0 {
		t.Errorf("left over: %+v, %d types", st, registered(b))
	}
}

// countingCaller checks that every query ends once.
type countingCaller struct{ ends, answered atomic.Int64 }

func (c *countingCaller) QueryDone(_ *Query, a Answer) {
	c.ends.Add(1)
	if a.Status == Answered {
		c.answered.Add(1)
	}
}

// Replies, deadlines, cancels and departing handlers race for the same queries: each ends exactly
// once.
func TestConcurrentQueries(t *testing.T) {
	const callers, each = 4, 500
	b := New(Config{QueryCapacity: 64})
	defer b.Close()
	stop := make(chan struct{})
	var handlers, askers sync.WaitGroup
	handlers.Go(func() {
		for round := 0; ; round++ {
			r := newReader()
			r.stream, _ = b.Handle(QueryHandler, r, []string{"a"}, 0)
			for n := 0; n < 100; {
				select {
				case <-stop:
					r.stream.Discard()
					return
				case <-r.wake:
				}
				for m := r.stream.Pop(); m != nil; m = r.stream.Pop() {
					if n++; n%3 != 0 {
						b.Reply(r, m.Body, true, nil, nil)
					}
					m.Release()
				}
			}
			r.stream.Discard()
		}
	})
	c := &countingCaller{}
	var sent, forgotten atomic.Int64
	for range callers {
		askers.Go(func() {
			for i := range each {
				q, outcome := ask(b, "a", time.Millisecond, c)
				if outcome != Sent {
					continue
				}
				sent.Add(1)
				switch i % 5 {
				case 0:
					q.Cancel()
				case 1:
					if b.queries.finish(q) { // what Forget does, and whether it came first
						forgotten.Add(1)
					}
				}
			}
		})
	}
	askers.Wait()
	close(stop)
	handlers.Wait()
	cancelAll(b.queries.shut())
	waitFor(t, func() bool { return c.ends.Load()+forgotten.Load() >= sent.Load() })
	st := b.Stats()
	if c.ends.Load()+forgotten.Load() != sent.Load() || c.answered.Load() != st.QueriesExecuted {
		t.Errorf("%d sent, %d ended, %d forgotten, %d answered, stats %+v",
			sent.Load(), c.ends.Load(), forgotten.Load(), c.answered.Load(), st)
	}
	if st.PendingQueries != 0 || st.BufferedBytes != 0 {
		t.Errorf("left over: %+v", st)
	}
}

// Queries that all saw a free slot before they were built must still not exceed the capacity.
func TestConcurrentQueryCapacity(t *testing.T) {
	const capacity, callers = 3, 8
	b, c := newBus(t, Config{QueryCapacity: capacity}), &countingCaller{}
	b.Handle(QueryHandler, &port{}, []string{"a"}, 0)
	var building, done sync.WaitGroup
	var sent, refused atomic.Int64
	building.Add(callers)
	for range callers {
		done.Go(func() {
			_, outcome := b.Query([]byte("a"), time.Hour, c, func(*Message, []byte) {
				building.Done()
				building.Wait()
			})
			switch outcome {
			case Sent:
				sent.Add(1)
			case TooManyQueries:
				refused.Add(1)
			}
		})
	}
	done.Wait()
	if sent.Load() != capacity || refused.Load() != callers-capacity {
		t.Errorf("%d sent, %d refused, want %d, %d", sent.Load(), refused.Load(), capacity, callers-capacity)
	}
}

// waitFor gives a timer callback that is already running the chance to finish.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("gave up waiting")
}

// Of many registrations of overlapping types at once, exactly one wins and no part of a loser
// stays.
func TestConcurrentHandle(t *testing.T) {
	b := newBus(t, Config{})
	for range 100 {
		var wg sync.WaitGroup
		var won [4]*Stream
		for i, types := range [4][]string{{"x", "y"}, {"y", "x"}, {"y", "z", "x"}, {"z", "y"}} {
			wg.Go(func() { won[i], _ = b.Handle(QueryHandler, &port{}, types, 0) })
		}
		wg.Wait()
		winners := 0
		for _, s := range won {
			if s != nil {
				winners++
				s.Detach()
			}
		}
		if winners != 1 || registered(b) != 0 {
			t.Fatalf("%d winners, %d types left", winners, registered(b))
		}
	}
}
