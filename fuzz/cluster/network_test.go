package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

// network is a process's way to the stream: that of memstream, on which every call takes a time of
// its own and ends only while the process is awake.
type network struct {
	*memstream.Client
	l      *life
	dice   *dice // of who waits for appended blocks
	begins *dice // of who makes a call
	times  *dice
}

// callTime is the longest that a call takes beside what its network adds.
const callTime = 500 * time.Microsecond

// space lets a time pass. A process that ends has no time: all that it has begun ends at one
// moment.
func (s *network) space(d *dice) {
	if s.l.ctx.Err() == nil {
		time.Sleep(d.upTo(callTime))
		s.l.n.awake(s.l.ctx)
	}
}

// call lets a time pass before a call, and returns what lets one pass after it. A block that is
// acknowledged wakes who writes the next one and who writes a snapshot: before a call begins, only
// begins decides.
func (s *network) call() (end func()) {
	s.space(s.begins)
	return func() { s.space(s.dice) }
}

// takes is how long something takes, for memstream.
func (s *network) takes(least, most time.Duration) time.Duration {
	if s.l.ctx.Err() != nil {
		return 0
	}
	return s.times.between(least, most)
}

// Append implements replicated.Stream.
func (s *network) Append(a *replicated.Append) (wait func() replicated.Outcome) {
	if s.l.n.w.bug == noFence {
		return func() replicated.Outcome { return s.unfenced(a) }
	}
	answered := s.Client.Append(a)
	return func() replicated.Outcome {
		s.space(s.dice) // another block may be sent at the moment at which this one is awaited
		o := answered()
		s.space(s.dice)
		return o
	}
}

// unfenced appends to whatever end the stream has.
func (s *network) unfenced(a *replicated.Append) (o replicated.Outcome) {
	for i := range 20 {
		st, err := s.State(s.l.ctx)
		if err != nil {
			return replicated.Outcome{Err: err}
		}
		b := *a
		b.After, b.ID = st.Last, fmt.Sprint(a.ID, " ", i)
		if o = s.Client.Append(&b)(); !errors.Is(o.Err, replicated.ErrNotStored) {
			break
		}
		s.space(s.dice)
	}
	o.Seq = a.Last()
	return o
}

// State implements replicated.Stream.
func (s *network) State(ctx context.Context) (replicated.State, error) {
	defer s.call()()
	return s.Client.State(ctx)
}

// Read implements replicated.Stream.
func (s *network) Read(ctx context.Context, from, to uint64, f func(m *replicated.Message) error) error {
	defer s.call()()
	return s.Client.Read(ctx, from, to, func(m *replicated.Message) error {
		s.space(s.dice)
		return f(m)
	})
}

// Purge implements replicated.Stream.
func (s *network) Purge(ctx context.Context, below uint64) error {
	defer s.call()()
	return s.Client.Purge(ctx, below)
}

// Put implements replicated.Chunks.
func (s *network) Put(ctx context.Context, set string, n uint32, chunk []byte) error {
	defer s.call()()
	return s.Client.Put(ctx, set, n, chunk)
}

// Get implements replicated.Chunks.
func (s *network) Get(ctx context.Context, set string, n uint32, f func(chunk []byte) error) error {
	defer s.call()()
	return s.Client.Get(ctx, set, n, f)
}

// Sets implements replicated.Chunks.
func (s *network) Sets(ctx context.Context) ([]string, error) {
	defer s.call()()
	return s.Client.Sets(ctx)
}

// Drop implements replicated.Chunks.
func (s *network) Drop(ctx context.Context, set string) error {
	defer s.call()()
	return s.Client.Drop(ctx, set)
}

// direction is that of what a way carries.
type direction int

const (
	requests direction = iota
	replies
	directions
)

// weather is what a way does to what it carries.
type weather struct {
	cut  [directions]bool
	lose int // of a thousand
	slow int // of a thousand are late by up to slowness
}

// slowness is long enough for an owner to lose its lease while a request is under way.
const slowness = 2 * term

// way is the network between a client and a node. What it carries may overtake what it carried
// before.
type way struct {
	dice *dice
	mu   sync.Mutex
	now  weather
}

// wayTime is the longest that a message takes in fine weather.
const wayTime = 3 * time.Millisecond

func (y *way) set(w weather) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = w
}

// carry calls arrive later, unless it is lost.
func (y *way) carry(d direction, arrive func()) {
	y.mu.Lock()
	now := y.now
	y.mu.Unlock()
	most := wayTime
	if y.dice.hits(now.slow) {
		most += slowness
	}
	if !y.dice.hits(now.lose) && !now.cut[d] {
		time.AfterFunc(y.dice.upTo(most), arrive)
	}
}
