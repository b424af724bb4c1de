package memstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"trunkline/engine/journal/replicated"
)

// Client is one node's way to a log. It is a replicated.Stream and a replicated.Chunks.
type Client struct {
	log *Log

	mu     sync.Mutex
	faults Faults
	rand   *rand.Rand
	times  func(least, most time.Duration) time.Duration // nil: by rand
	cut    Cut
	gone   bool
	lost   []uint64       // messages that the node's replica has lost
	rot    map[uint64]int // bits of messages that it shows flipped
}

// Cut is which ways of a network are cut.
type Cut uint8

// The ways of a network.
const (
	// Requests do not arrive.
	Requests Cut = 1 << iota
	// Answers do not arrive.
	Answers
)

var (
	errNoAnswer = errors.New("the stream does not answer")
	errGone     = errors.New("the client is gone")
)

// Part cuts ways of the network, or joins them again; 0 joins all. What is on its way arrives.
func (c *Client) Part(ways Cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = ways
}

// SetFaults changes the network.
func (c *Client) SetFaults(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

// SetTimes has pick choose how long from now something takes, from more than least up to most. A
// simulation keeps apart with it what must not happen at one moment.
func (c *Client) SetTimes(pick func(least, most time.Duration) time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = pick
}

// Kill ends the client as the death of its process does: what is on its way may still arrive.
func (c *Client) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

// LoseMessage has the replica that the client reads lose a message.
func (c *Client) LoseMessage(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = append(c.lost, seq)
}

// FlipBit has the replica that the client reads show one bit of a message flipped.
func (c *Client) FlipBit(seq uint64, bit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rot[seq] = bit
}

// within returns how long to wait for an answer: each time a little longer or shorter, so that no
// two clients give up at one moment and chance decides which is first. The caller holds mu.
func (c *Client) within() time.Duration { return c.pick(answerWithin, answerWithin+answerWithin/8) }

// delay returns how long one way takes that begins after a time. The caller holds mu.
func (c *Client) delay(begins time.Duration) time.Duration {
	if c.faults.Delay == 0 {
		return begins
	}
	return c.pick(begins, begins+c.faults.Delay)
}

func (c *Client) pick(least, most time.Duration) time.Duration {
	if c.times != nil {
		return c.times(least, most)
	}
	return least + 1 + time.Duration(c.rand.Int64N(int64(most-least)))
}

// plan is what happens to one append.
type plan struct {
	arrivals []time.Duration
	unheard  bool // the answer is lost
}

// plan throws the dice for one append. The caller holds mu.
func (c *Client) plan() plan {
	hits := func(n int) bool { return n > 0 && c.rand.IntN(1000) < n }
	var p plan
	if !hits(c.faults.Lose) && c.cut&Requests == 0 && !c.gone {
		p.arrivals = append(p.arrivals, c.delay(0))
	}
	if hits(c.faults.Double) && len(p.arrivals) > 0 {
		p.arrivals = append(p.arrivals, c.delay(p.arrivals[0]))
	}
	p.unheard = hits(c.faults.LoseAnswer)
	return p
}

// Append implements replicated.Stream.
func (c *Client) Append(a *replicated.Append) (wait func() replicated.Outcome) {
	c.mu.Lock()
	p := c.plan()
	c.mu.Unlock()
	sent := *a
	sent.Data, sent.Rest = slices.Clone(a.Data), nil
	for _, part := range a.Rest {
		sent.Rest = append(sent.Rest, slices.Clone(part))
	}
	answers := make(chan replicated.Outcome, len(p.arrivals))
	for _, d := range p.arrivals {
		after(d, func() {
			o := c.log.append(&sent)
			if !p.unheard {
				after(c.way(), func() { c.answer(answers, o) })
			}
		})
	}
	return func() replicated.Outcome { return c.wait(answers) }
}

// way returns how long one way takes from now on.
func (c *Client) way() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay(0)
}

// after calls f after a time, at once where that is 0.
func after(d time.Duration, f func()) {
	if d == 0 {
		f()
		return
	}
	time.AfterFunc(d, f)
}

func (c *Client) answer(to chan<- replicated.Outcome, o replicated.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut&Answers == 0 && !c.gone {
		to <- o
	}
}

func (c *Client) wait(answers <-chan replicated.Outcome) replicated.Outcome {
	select {
	case o := <-answers:
		return o
	default:
	}
	c.mu.Lock()
	gone, within := c.gone, c.within()
	c.mu.Unlock()
	if gone {
		return replicated.Outcome{Err: errGone}
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case o := <-answers:
		return o
	case <-late.C:
		return replicated.Outcome{Err: errNoAnswer}
	}
}

// call is reach for a call that takes as long as its way there.
func (c *Client) call(ctx context.Context) error {
	time.Sleep(c.way())
	return c.reach(ctx)
}

// reach returns whether the log is reached; if not it takes its time.
func (c *Client) reach(ctx context.Context) error {
	c.mu.Lock()
	cut, gone, within := c.cut, c.gone, time.Duration(0)
	if cut != 0 {
		within = c.within()
	}
	c.mu.Unlock()
	switch {
	case gone:
		return errGone
	case cut == 0:
		return ctx.Err()
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errNoAnswer
	}
}

// State implements replicated.Stream.
func (c *Client) State(ctx context.Context) (replicated.State, error) {
	if err := c.call(ctx); err != nil {
		return replicated.State{}, err
	}
	c.mu.Lock()
	back := uint64(0)
	if c.faults.Stale > c.rand.IntN(1000) {
		back = 1 + c.rand.Uint64N(4)
	}
	lost := slices.Clone(c.lost)
	c.mu.Unlock()
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	st := replicated.State{MaxData: c.log.maxData, First: c.log.first, Last: max(c.log.last()-min(back, c.log.last()), c.log.first-1)}
	for i := range c.log.messages {
		m := &c.log.messages[i]
		if slices.Contains(lost, m.Seq) {
			st.Deleted++
		} else if m.Kind == replicated.KindControl && m.Seq <= st.Last {
			copied := *m
			copied.Data = slices.Clone(m.Data)
			st.Control = &copied
		}
	}
	return st, nil
}

// Read implements replicated.Stream.
func (c *Client) Read(ctx context.Context, from, to uint64, f func(m *replicated.Message) error) error {
	if err := c.call(ctx); err != nil {
		return err
	}
	for seq := from; seq <= to; {
		if err := c.reach(ctx); err != nil {
			return err
		}
		m, grown := c.next(seq)
		if m == nil && to != replicated.Forever {
			return nil
		}
		if m == nil {
			select {
			case <-grown:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if m.Seq > to {
			return nil
		}
		err := f(m)
		for i := range m.Data { // a caller that keeps it is found
			m.Data[i] ^= 0x5a
		}
		if err != nil {
			return err
		}
		seq = m.Seq + 1
	}
	return nil
}

// next returns a copy of the first message from a sequence on that the node's replica has; nil for
// none, and then what is closed when there is more.
func (c *Client) next(seq uint64) (*replicated.Message, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	for seq = max(seq, c.log.first); slices.Contains(c.lost, seq); {
		seq++
	}
	if seq > c.log.last() {
		return nil, c.log.grown
	}
	m := c.log.messages[seq-c.log.first]
	m.Data = slices.Clone(m.Data)
	if bit, ok := c.rot[seq]; ok && len(m.Data) > 0 {
		bit %= len(m.Data) * 8
		m.Data[bit/8] ^= 1 << (bit % 8)
	}
	return &m, nil
}

// Purge implements replicated.Stream.
func (c *Client) Purge(ctx context.Context, below uint64) error {
	if err := c.call(ctx); err != nil {
		return err
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	below = min(below, c.log.last()+1)
	if below > c.log.first {
		c.log.messages = slices.Clone(c.log.messages[below-c.log.first:])
		c.log.first = below
	}
	return nil
}

// Put implements replicated.Chunks.
func (c *Client) Put(ctx context.Context, set string, n uint32, chunk []byte) error {
	if err := c.call(ctx); err != nil {
		return err
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	if have := len(c.log.sets[set]); have != int(n) {
		return fmt.Errorf("cannot put chunk %d of set %s behind %d", n, set, have)
	}
	c.log.sets[set] = append(c.log.sets[set], slices.Clone(chunk))
	return nil
}

// Get implements replicated.Chunks.
func (c *Client) Get(ctx context.Context, set string, n uint32, f func(chunk []byte) error) error {
	if err := c.call(ctx); err != nil {
		return err
	}
	c.log.mu.Lock()
	chunks := slices.Clone(c.log.sets[set])
	c.log.mu.Unlock()
	if uint64(len(chunks)) < uint64(n) {
		return fmt.Errorf("cannot read set %s: %d chunks, want %d", set, len(chunks), n)
	}
	for _, chunk := range chunks[:n] {
		if err := f(slices.Clone(chunk)); err != nil {
			return err
		}
	}
	return nil
}

// Sets implements replicated.Chunks.
func (c *Client) Sets(ctx context.Context) ([]string, error) {
	if err := c.call(ctx); err != nil {
		return nil, err
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return slices.Sorted(maps.Keys(c.log.sets)), nil
}

// Drop implements replicated.Chunks.
func (c *Client) Drop(ctx context.Context, set string) error {
	if err := c.call(ctx); err != nil {
		return err
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	delete(c.log.sets, set)
	return nil
}
