package link

import "sync/atomic"

// OwnInput is how many bytes of input each connection may hold beside a Budget: a line or frame of
// moderate length never waits for what other connections hold.
const OwnInput = 128 << 10

// Budget bounds the input that all connections of a server hold and no session has taken, without
// OwnInput bytes of each. It counts the memory of the buffers, not the bytes in them. Any goroutine
// may call its methods, which do not allocate. A nil Budget bounds nothing.
type Budget struct {
	max           int64
	used, refused atomic.Int64
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int) *Budget { return &Budget{max: int64(max)} }

// Charge is the part of a Budget that one connection has. The zero Charge is none.
type Charge struct{ n int64 }

// Fit makes c the charge of a connection whose input buffer has size bytes. It reports false and
// changes nothing where the charge would grow and the budget has no room. Shrinking always fits.
func (b *Budget) Fit(c *Charge, size int) bool {
	if b == nil {
		return true
	}
	want := int64(max(size-OwnInput, 0))
	grow := want - c.n
	if grow == 0 {
		return true
	}
	if used := b.used.Add(grow); grow > 0 && used > b.max {
		b.used.Add(-grow)
		return false
	}
	c.n = want
	return true
}

// CountRefused counts a connection that was closed because it did not fit.
func (b *Budget) CountRefused() { b.refused.Add(1) }

// Used returns how many bytes are charged.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused returns how many connections were closed because they did not fit.
func (b *Budget) Refused() int64 { return b.refused.Load() }
