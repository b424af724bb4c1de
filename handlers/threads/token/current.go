package token

import "sync/atomic"

// Current is the Verifier in force, which another one can replace while tokens are verified. Its
// methods may be called from any goroutine but for Replace and Close, which one calls at a time.
type Current struct{ v atomic.Pointer[inForce] }

// inForce adds base to the generations of a Verifier, so that claims which another one has verified
// are verified again.
type inForce struct {
	*Verifier
	base uint64
}

// NewCurrent returns a Current with v in force, which it owns.
func NewCurrent(v *Verifier) *Current {
	c := new(Current)
	c.v.Store(&inForce{Verifier: v})
	return c
}

// Replace puts next in force, which c owns from then on, and closes the one before. It reports
// false, closes next and changes nothing if both verify the same.
func (c *Current) Replace(next *Verifier) (replaced bool) {
	old := c.v.Load()
	if old.mark == next.mark {
		next.Close()
		return false
	}
	c.v.Store(&inForce{next, old.base + generationsApart})
	old.Close()
	return true
}

// generationsApart is more than the generations of one Verifier.
const generationsApart = 1 << 32

// Verify is Verifier.Verify.
func (c *Current) Verify(text string) (*Claims, error) { return c.v.Load().Verify(text) }

// VerifyKnown is Verifier.VerifyKnown.
func (c *Current) VerifyKnown(text string) (*Claims, error) { return c.v.Load().VerifyKnown(text) }

// Generation is Verifier.Generation; it differs between two that were in force. It does not
// allocate.
func (c *Current) Generation() uint64 {
	f := c.v.Load()
	return f.base + f.Verifier.Generation()
}

// Close closes the Verifier in force.
func (c *Current) Close() { c.v.Load().Close() }

// HasKeys reports whether there is a key to verify by. If there is none, a key set over HTTP is
// requested, without waiting for it.
func (c *Current) HasKeys() bool { return c.v.Load().hasKeys() }
