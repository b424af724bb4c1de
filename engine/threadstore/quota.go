package threadstore

import "sync"

// bucket is a token bucket: tokens in units of 1/60000 of one, so that a rate per minute adds the
// rate per millisecond.
type bucket struct {
	tokens int64
	at     int64 // when tokens was right; 0: it is full
}

// minute is the milliseconds in which a bucket fills.
const minute = 60_000

// take takes a token of a bucket that holds rate tokens and fills in a minute. It returns the
// milliseconds until there is one, 0 if there was.
func (b *bucket) take(rate int, now int64) (wait int64) {
	b.fill(rate, now)
	if b.tokens >= minute {
		b.tokens -= minute
		return 0
	}
	return (minute - b.tokens + int64(rate) - 1) / int64(rate)
}

func (b *bucket) fill(rate int, now int64) {
	full := int64(rate) * minute
	if b.at == 0 || apart(now, b.at) >= minute {
		b.tokens, b.at = full, now
	} else if now > b.at {
		b.tokens, b.at = min(full, b.tokens+(now-b.at)*int64(rate)), now
	}
}

// apart is the time between two readings of the wall clock. It stands in for how long ago one was,
// where a clock that was set back must not make anything wait until it has caught up.
func apart(a, b int64) int64 { return max(a-b, b-a) }

// maxBuckets bounds the agents whose posts are counted. Beyond it those that are full are dropped;
// where none is, an agent without a bucket waits.
const maxBuckets = 65_536

// quotas bounds posts (threads §6). They are not recorded: after a restart all buckets are full.
type quotas struct {
	mu     sync.Mutex
	agents map[agentKey]*bucket
	swept  int64 // when full buckets were dropped last
}

// sweepEvery is the least time between two walks over all buckets, in milliseconds.
const sweepEvery = 1000

func (q *quotas) init() { q.agents = map[agentKey]*bucket{} }

// PostRates bounds the posts of a minute; 0: they are not bounded.
type PostRates struct{ PerAgent, PerThread int }

// SetPostRates changes Config.PostsPerAgent and Config.PostsPerThread.
func (e *Engine) SetPostRates(r PostRates) { e.rates.Store(&r) }

// take takes a token of the agent and one of the thread, or none. Caller holds t.mu.
func (q *quotas) take(r *PostRates, t *thread, a *Actor, now int64) (wait int64) {
	if r.PerThread > 0 {
		if wait = t.quota.take(r.PerThread, now); wait > 0 {
			return wait
		}
	}
	if r.PerAgent == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.agents[agentKey{a.Workspace, a.Agent}]
	if b == nil {
		if b = q.add(r.PerAgent, a, now); b == nil {
			wait = sweepEvery
		}
	}
	if b != nil {
		wait = b.take(r.PerAgent, now)
	}
	if wait > 0 && r.PerThread > 0 {
		t.quota.tokens += minute
	}
	return wait
}

// add returns a full bucket for an agent, nil if there is no room.
func (q *quotas) add(rate int, a *Actor, now int64) *bucket {
	if len(q.agents) >= maxBuckets && apart(now, q.swept) >= sweepEvery {
		q.swept = now
		for k, b := range q.agents {
			if apart(now, b.at) >= minute {
				delete(q.agents, k)
			}
		}
	}
	if len(q.agents) >= maxBuckets {
		return nil
	}
	b := &bucket{}
	q.agents[agentKey{a.Workspace, a.Agent}] = b
	return b
}
