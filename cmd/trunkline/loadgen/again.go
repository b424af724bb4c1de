package loadgen

// again is a request that goes out once more, on the next transport (Plan.Resend).
type again struct {
	start int64 // when it was due
	seq   int64
}

// codeDraining is how a server refuses a request without having looked at it, because it drains
// (kernel-ipc §2.7).
const codeDraining = "UNAVAILABLE"

// drains reports whether a reply is to be taken as the end of its transport.
func (c *conn) drains(r *reply) bool {
	return c.g.plan.Resend && !r.ok && string(r.code) == codeDraining
}

// postpone keeps a request for the next transport. There are never more of them than places. Both
// locks are held.
func (c *conn) postpone(f *flight) {
	c.again = append(c.again, again{f.start, f.seq})
	c.shard.accounts[c.g.accountAt(f.start)].Resent++
}

// drained reports whether the server drains and everything on the transport is answered.
func (c *conn) drained() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining && c.places.live == 0
}

// sendAgain appends what was postponed, and returns how much. Both locks are held.
func (c *conn) sendAgain() (n int) {
	for len(c.again) > n && len(c.out) < batchBytes && !c.places.full() {
		c.write1(c.again[n].seq, c.again[n].start)
		n++
	}
	c.again = c.again[:copy(c.again, c.again[n:])]
	return n
}

// giveUpAgain ends what was postponed and was due a timeout ago. Both locks are held.
func (c *conn) giveUpAgain(now int64, why string) {
	kept := c.again[:0]
	for _, r := range c.again {
		if r.start > now-c.g.timeout {
			kept = append(kept, r)
			continue
		}
		share := uint8(c.g.mix.pick(r.seq))
		a := c.shard.accounts[c.g.accountAt(r.start)]
		a.observe(share, c.g.timeout)
		fail(a, share, why)
	}
	c.again = kept
}
