package projects

import (
	"slices"
	"sync"

	"trunkline/engine/projects/codec"
)

// Waker is woken when a journal has more. *connection.Port is one.
type Waker interface{ Wake() }

// Journal has the last events of one project, encoded once for all connections (exacta §2.5). Its
// methods may be called from any goroutine.
type Journal struct {
	most, mostBytes int // events

	mu      sync.Mutex
	entries []entry // a ring
	head    int     // index of the oldest
	count   int
	bytes   int
	last    uint64 // stream_seq of the newest event
	state   State
	ended   bool
	waiting []Waker       // in any order
	places  map[Waker]int // where each stands
}

// entry is one event.
type entry struct {
	line        []byte
	origin      *Origin
	correlation codec.ID
	seq         uint64 // of the correlation
}

// Origin is who sent a request: its events are for them (exacta §2.4).
type Origin struct {
	mu    sync.Mutex
	conns []uint64
	first [1]uint64 // room for most
}

// Add adds a connection.
func (o *Origin) Add(conn uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = o.first[:0]
	}
	if !slices.Contains(o.conns, conn) {
		o.conns = append(o.conns, conn)
	}
}

// has reports whether a connection sent the request. A nil Origin has none.
func (o *Origin) has(conn uint64) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.conns, conn)
}

// NewJournal returns a journal whose first event follows last, the stream_seq of the last event of
// the same root. l has its defaults.
func NewJournal(last uint64, l *Limits) *Journal {
	return &Journal{most: l.JournalEvents, mostBytes: l.JournalBytes, last: last, places: make(map[Waker]int)}
}

// Status is what a journal has of its project.
type Status struct {
	State        State
	Oldest, Last uint64 // stream_seq; Oldest is one more than Last while there is no event
	Ended        bool   // the project was closed
}

// Status returns the state of the project as its events report it.
func (j *Journal) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status()
}

func (j *Journal) status() Status {
	return Status{State: j.state, Oldest: j.oldest(), Last: j.last, Ended: j.ended}
}

func (j *Journal) oldest() uint64 { return j.last - uint64(j.count) + 1 }

// Last returns the stream_seq of the newest event.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Watch has w woken by each event, until Unwatch.
func (j *Journal) Watch(w Waker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, again := j.places[w]; !again {
		j.places[w] = len(j.waiting)
		j.waiting = append(j.waiting, w)
	}
}

// Unwatch ends Watch.
func (j *Journal) Unwatch(w Waker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, ok := j.places[w]
	if !ok {
		return
	}
	last := len(j.waiting) - 1
	j.waiting[at] = j.waiting[last]
	j.places[j.waiting[at]] = at
	j.waiting[last] = nil
	j.waiting = j.waiting[:last]
	delete(j.places, w)
}

// append adds the next event.
func (j *Journal) append(e entry, state State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.count == len(j.entries) {
		j.grow()
	}
	j.entries[(j.head+j.count)%len(j.entries)] = e
	j.count++
	j.last++
	j.bytes += len(e.line)
	j.state = state
	for j.count > j.most || j.bytes > j.mostBytes && j.count > 1 {
		e := &j.entries[j.head]
		j.bytes -= len(e.line)
		*e = entry{}
		j.head = (j.head + 1) % len(j.entries)
		j.count--
	}
	for _, w := range j.waiting {
		w.Wake()
	}
}

// grow makes room for more events.
func (j *Journal) grow() {
	next := make([]entry, max(64, min(2*len(j.entries), j.most+1)))
	for i := range j.count {
		next[i] = j.entries[(j.head+i)%len(j.entries)]
	}
	j.entries, j.head = next, 0
}

// end marks the project as closed. What is in the journal stays for those who read it.
func (j *Journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	for _, w := range j.waiting {
		w.Wake()
	}
}

// Cursor is the place of one connection in a journal, and which events it gets (exacta §2.4, §3.5).
type Cursor struct {
	Conn        uint64   // it gets the events of its own requests
	Own         uint64   // from this one on
	Next        uint64   // stream_seq of the next event to look at
	From        uint64   // from this one on it gets all events, if All
	All         bool     // the project is in its subscription set
	Correlation codec.ID // not zero: only this one of All
	Window      int      // how many events may be without an ack; 0: any number

	unacked []uint64 // stream_seq of events that were given, in order
}

// wants reports whether the connection gets an event.
func (c *Cursor) wants(e *entry, seq uint64) bool {
	if c.All && seq >= c.From && (c.Correlation == codec.ID{} || c.Correlation == e.correlation) {
		return true
	}
	return seq >= c.Own && e.origin.has(c.Conn)
}

// Acked takes an ack of all events up to seq. One of events that were not given is ignored.
func (c *Cursor) Acked(seq uint64) {
	if seq >= c.Next {
		return
	}
	n := 0
	for n < len(c.unacked) && c.unacked[n] <= seq {
		n++
	}
	c.unacked = append(c.unacked[:0], c.unacked[n:]...)
}

// Copied is how a Copy ended.
type Copied uint8

// The ends of a Copy.
const (
	CopiedAll  Copied = iota // up to the given event
	CopiedFull               // there is no room for the next event
	CopiedWait               // the next event waits for an ack
	CopiedLost               // the next event is not in the journal any more
)

// Copy appends the events up to the one with the number to that c gets, until out has grown by
// room bytes, and moves c. It does not allocate where out has room.
func (j *Journal) Copy(out []byte, room int, c *Cursor, to uint64) ([]byte, Copied) {
	j.mu.Lock()
	defer j.mu.Unlock()
	start := len(out)
	for to = min(to, j.last); c.Next <= to; c.Next++ {
		if c.Next < j.oldest() {
			return out, CopiedLost
		}
		e := &j.entries[(j.head+int(c.Next-j.oldest()))%len(j.entries)]
		if !c.wants(e, c.Next) {
			continue
		}
		if len(out)-start >= room {
			return out, CopiedFull
		}
		if c.Window > 0 {
			if len(c.unacked) >= c.Window {
				return out, CopiedWait
			}
			c.unacked = append(c.unacked, c.Next)
		}
		out = append(out, e.line...)
	}
	return out, CopiedAll
}

// Count returns how many of the events behind after up to last are of a correlation; of any, if it
// is zero.
func (j *Journal) Count(after, last uint64, correlation codec.ID) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if correlation == (codec.ID{}) {
		return int(last - after)
	}
	for i := range j.count {
		e := &j.entries[(j.head+i)%len(j.entries)]
		if at := j.oldest() + uint64(i); at > after && at <= last && e.correlation == correlation {
			n++
		}
	}
	return n
}

// Behind returns the stream_seq of the event number seq of a correlation; 0 for seq 0 if the
// journal has the first one. ok is false if the journal does not have what follows it.
func (j *Journal) Behind(correlation codec.ID, seq uint64) (after uint64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found, first uint64
	for i := range j.count {
		e := &j.entries[(j.head+i)%len(j.entries)]
		if e.correlation != correlation {
			continue
		}
		at := j.oldest() + uint64(i)
		if first == 0 {
			if first = e.seq; seq+1 == first {
				return at - 1, true
			}
		}
		if e.seq == seq {
			found = at
		}
	}
	return found, found != 0
}
