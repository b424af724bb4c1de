package loadgen

import (
	"maps"
	"slices"
	"time"
)

// collector makes samples of what the shards counted.
type collector struct {
	g      *generator
	spare  []*account // one per shard
	from   int64      // where the next sample begins, in nanoseconds of the run
	which  int        // account
	behind int64
	result *Result
	kept   keeper
}

// collect observes the run until done.
func (g *generator) collect(done <-chan struct{}, observe func(Sample)) *Result {
	c := &collector{g: g, result: &Result{Plan: g.plan, Start: g.begin.Add(g.plan.Warmup), Total: NewSample(g.plan.Mix)}}
	for range g.shards {
		c.spare = append(c.spare, newAccount(g.plan.Mix))
	}
	if g.warm == 0 {
		c.which = measuring
	}
	if observe == nil {
		observe = func(Sample) {}
	}
	timer := time.NewTimer(time.Duration(c.boundary() - g.now()))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			observe(c.turn(g.now()))
			timer.Reset(time.Duration(c.boundary() - g.now()))
		case <-done:
			if g.now() >= g.warm && c.which == warming {
				observe(c.turn(g.now()))
			}
			s := c.turn(g.now())
			if s.From < g.plan.Duration && s.To > s.From || s.Sent+s.Done+s.Failed > 0 { // else a moment in which the last ones ended
				observe(s)
			}
			c.result.Intervals = c.kept.all(g.plan.Interval / 2)
			c.result.MissedSchedule = c.behind*lagShare > c.result.Total.Sent
			c.result.Stopped = g.cut.Load()
			return c.result
		}
	}
}

// boundary is when the sample that has begun ends: at a multiple of the interval from the start of
// measuring, as the last one of warming up does.
func (c *collector) boundary() int64 {
	every := int64(c.g.plan.Interval)
	passed := (c.from - c.g.warm) % every
	if passed < 0 {
		passed += every
	}
	return c.from + every - passed
}

// turn takes the sample that ends now.
func (c *collector) turn(now int64) Sample {
	if c.which == warming && now >= c.g.warm {
		now = c.g.warm
	}
	if end := c.g.finished.Load(); end > 0 {
		now = min(now, end)
	}
	now = max(now, c.from)
	s := c.sample(now)
	if c.which == measuring && (s.To > s.From || s.Sent+s.Done+s.Failed > 0) {
		c.result.Total.Add(&s)
		c.kept.add(&s)
	}
	if now >= c.g.warm {
		c.which = measuring
	}
	c.from = now
	return s
}

func (c *collector) sample(now int64) Sample {
	g := c.g
	s := NewSample(g.plan.Mix)
	var flying int64
	for i, shard := range g.shards {
		shard.mu.Lock()
		a := shard.accounts[c.which]
		shard.accounts[c.which] = c.spare[i] // an empty one
		flying += shard.inFlight
		shard.mu.Unlock()
		s.Add(&a.Sample)
		if c.which == measuring {
			c.behind += a.behind
			c.result.LatestLag = max(c.result.LatestLag, time.Duration(a.longest))
		}
		a.clear()
		c.spare[i] = a
	}
	s.From, s.To, s.InFlight = time.Duration(c.from-g.warm), time.Duration(now-g.warm), flying
	for _, m := range s.Methods {
		s.Latency.Merge(m.Latency)
	}
	s.Due = s.Sent
	if g.table != nil {
		s.Due = g.table.before(now) - g.table.before(c.from)
	}
	return s
}

// keeper keeps at most keptIntervals samples of a run of any length.
type keeper struct {
	list  []Sample
	group int // samples that one of the list stands for
	n     int // samples in the last one
}

func (k *keeper) add(s *Sample) {
	if k.n < k.group {
		k.list[len(k.list)-1].Add(s)
		k.n++
		return
	}
	if len(k.list) == keptIntervals { // neighbours are joined
		for i := range len(k.list) / 2 {
			k.list[2*i].Add(&k.list[2*i+1])
			k.list[i] = k.list[2*i]
		}
		clear(k.list[len(k.list)/2:])
		k.list = k.list[:len(k.list)/2]
		k.group = 2 * max(k.group, 1)
	}
	one := *s // without the histograms of its methods
	one.Latency, one.Methods, one.Errors = s.Latency.Clone(), slices.Clone(s.Methods), maps.Clone(s.Errors)
	for i := range one.Methods {
		one.Methods[i].Latency = nil
	}
	k.list, k.n = append(k.list, one), 1
}

// all returns the list. A last sample below the shortest that may stand alone joins the one before:
// the rate of a moment is none.
func (k *keeper) all(shortest time.Duration) []Sample {
	if last := len(k.list) - 1; last > 0 && k.list[last].To-k.list[last].From < shortest {
		k.list[last-1].Add(&k.list[last])
		k.list = k.list[:last]
	}
	return k.list
}
