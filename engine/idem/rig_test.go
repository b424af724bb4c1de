package idem

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const ttl = int64(time.Minute)

// rig is a table with a clock that the test moves, and a tape of what the journal was given.
type rig struct {
	testing.TB
	*Table
	clock atomic.Int64
	tape  tape
}

func newRig(tb testing.TB, cfg Config) *rig {
	r := &rig{TB: tb}
	cfg.Now, cfg.Journal = r.clock.Load, r.tape.journal
	r.Table = New(cfg)
	return r
}

// tape is a journal in memory: record i has index i+1.
type tape struct {
	mu      sync.Mutex
	records [][]byte
}

func (t *tape) journal(c *Change) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records = append(t.records, AppendChange(nil, c))
	return uint64(len(t.records))
}

func (t *tape) last() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(len(t.records))
}

// replay applies the records behind index from to h.
func (t *tape) replay(tb testing.TB, h *Table, from uint64) {
	tb.Helper()
	var c Change
	for i := from; i < t.last(); i++ {
		if err := ParseChange(t.records[i], &c); err != nil {
			tb.Fatal(err)
		}
		if err := h.Apply(&c, i+1); err != nil {
			tb.Fatal(err)
		}
	}
}

// reported lists the kinds of the records behind index from.
func (t *tape) reported(from int) string {
	var kinds []string
	var c Change
	for _, rec := range t.records[from:] {
		if ParseChange(rec, &c) != nil {
			return "unreadable"
		}
		kinds = append(kinds, c.Kind.String())
	}
	return strings.Join(kinds, " ")
}

func k(name string) Key             { return KeyOf([]byte("stdin"), []byte("AID.T.v1"), []byte(name)) }
func in(text string) [32]byte       { return sha256.Sum256([]byte(text)) }
func out(text string) Stored        { return Stored{Output: []byte(text)} }
func sized(n int) Stored            { return out(strings.Repeat("x", n)) }
func (r *rig) pass(d time.Duration) { r.clock.Add(int64(d)) }

// begin expects an outcome, and for Done an output.
func (r *rig) begin(key, input string, w Waiter, want Outcome, output string) {
	r.Helper()
	o, s := r.Begin(r.Now(), k(key), in(input), w)
	if o != want {
		r.Fatalf("Begin(%s, %s) = %v, want %v", key, input, o, want)
	}
	if (s != nil) != (want == Done) || s != nil && string(s.Output) != output {
		r.Fatalf("Begin(%s, %s) gives %+v, want %q", key, input, s, output)
	}
}

func (r *rig) finish(key string, s Stored) {
	r.Helper()
	if r.Finish(k(key), s) == nil {
		r.Fatalf("%s is not in flight", key)
	}
}

func (r *rig) run(key, output string) {
	r.Helper()
	r.begin(key, "", nil, Started, "")
	r.finish(key, out(output))
}

// counts expects entries, those in flight among them, bytes and waiters.
func (r *rig) counts(entries, inFlight int, bytes int64, waiting int) {
	r.Helper()
	if r.Len() != entries || r.InFlight() != inFlight || r.Bytes() != bytes || r.Waiting() != waiting {
		r.Fatalf("%d entries, %d in flight, %d bytes, %d waiting; want %d, %d, %d, %d",
			r.Len(), r.InFlight(), r.Bytes(), r.Waiting(), entries, inFlight, bytes, waiting)
	}
	if err := checkQuiet(r.Table); err != nil {
		r.Fatal(err)
	}
}

// sleeper is a waiter that notes what it was woken with.
type sleeper struct {
	woken atomic.Int32
	got   atomic.Pointer[Stored]
}

func (w *sleeper) Wake(r *Stored) {
	w.got.Store(r)
	w.woken.Add(1)
}

// check compares the counters, limits and lists of h with what its shards hold, at one moment.
func check(h *Table) error {
	for i := range h.shards {
		h.shards[i].mu.Lock()
		defer h.shards[i].mu.Unlock()
	}
	var entries, inFlight, bytes, waiting int64
	for i := range h.shards {
		s := &h.shards[i]
		settled := 0
		for _, e := range s.entries {
			entries, bytes, waiting = entries+1, bytes+e.size(), waiting+int64(len(e.waiters))
			if e.state == running {
				inFlight++
			} else {
				settled++
			}
		}
		if err := s.check(settled); err != nil {
			return err
		}
	}
	if !h.noEviction && (entries > h.maxEntries || bytes > h.maxBytes) || waiting > h.maxWaiters {
		return fmt.Errorf("%d entries, %d bytes, %d waiters are over a limit", entries, bytes, waiting)
	}
	if h.inFlight.Load() != inFlight || h.bytes.Load() < bytes || h.entries.Load() < entries || h.waiting.Load() < waiting {
		return fmt.Errorf("counters %d, %d, %d, %d; there are %d entries, %d in flight, %d bytes, %d waiters",
			h.entries.Load(), h.inFlight.Load(), h.bytes.Load(), h.waiting.Load(), entries, inFlight, bytes, waiting)
	}
	return nil
}

// checkQuiet is check when no one uses h: then nothing expires before due either.
func checkQuiet(h *Table) error {
	for i := range h.shards {
		if e := h.shards[i].lists[byEnd].head; e != nil && h.due.Load() > h.expiry(e.at) {
			return fmt.Errorf("an entry expires at %d, but nothing is due before %d", h.expiry(e.at), h.due.Load())
		}
	}
	return check(h)
}

// check verifies that both lists hold the settled entries, in order and linked both ways.
func (s *shard) check(settled int) error {
	for o := range numOrders {
		n, last := 0, (*entry)(nil)
		for e := s.lists[o].head; e != nil; e = e.links[o].next {
			if e.links[o].prev != last || e.state == running || last != nil && last.rank(o) > e.rank(o) {
				return fmt.Errorf("list %d is broken at entry %d", o, n)
			}
			last, n = e, n+1
		}
		if s.lists[o].tail != last || n != settled {
			return fmt.Errorf("list %d: wrong tail, or %d entries instead of %d", o, n, settled)
		}
	}
	if head := s.lists[byUse].head; head == nil && s.first.Load() != none || head != nil && s.first.Load() != head.use {
		return fmt.Errorf("wrong first use %d", s.first.Load())
	}
	return nil
}
