package cluster

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// dice is chance that several goroutines may ask for, though not at one moment. The times that it
// gives end on a lane of its own: two events of different dice are never at one moment, and two of
// the same dice neither.
type dice struct {
	mu   sync.Mutex
	r    *rand.Rand
	lane int64
	ends map[int64]bool // the times that were given and are not over
}

// lanes is how many dice a world may have, and how far apart, in nanoseconds, the times are that
// one of them gives.
const lanes = 8192

// dice returns new dice that depend on the seed and on what they are for.
func (w *world) newDice(use ...any) *dice {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, use...)
	return &dice{r: rand.New(rand.NewPCG(w.seed, h.Sum64())), lane: w.made.Add(1) % lanes, ends: make(map[int64]bool)}
}

func (d *dice) number() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Uint64()
}

// below returns a number from 0 on.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// hits is true for so many of a thousand calls.
func (d *dice) hits(perMille int) bool { return d.below(1000) < perMille }

// upTo returns a time of at least one nanosecond, and a little more than t at most.
func (d *dice) upTo(t time.Duration) time.Duration { return d.between(0, t) }

// between returns a time above least that is about most at most.
func (d *dice) between(least, most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now().UnixNano()
	end := now + int64(least) + 1 + d.r.Int64N(int64(most-least))
	for end += (d.lane - end%lanes + lanes) % lanes; d.ends[end]; {
		end += lanes
	}
	for old := range d.ends {
		if old < now {
			delete(d.ends, old)
		}
	}
	d.ends[end] = true
	return time.Duration(end - now)
}

// clock is that of a machine.
type clock struct {
	began  time.Time
	fast   int64 // thousandths
	offset atomic.Int64
}

// elapsed reads the clock that runs evenly, in nanoseconds: a little faster than that of others.
func (c *clock) elapsed() int64 {
	t := int64(time.Since(c.began))
	return t + t/1000*c.fast
}

// wall reads the one that is set by hand.
func (c *clock) wall() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// set has the wall clock jump.
func (c *clock) set(offset time.Duration) { c.offset.Store(int64(offset)) }
