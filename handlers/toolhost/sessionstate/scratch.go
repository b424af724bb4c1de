package sessionstate

import "math/bits"

// Room is memory for the writes of calls that run one after the other on one state: without it each
// write allocates. It holds what the state before has left behind. The zero Room is empty. It
// belongs to the owner of the state.
type Room struct {
	contents *contents
	held     *held
	// own means that the contents of the state are in no other one; slots has a bit for each slot
	// whose artifact is in no other one either.
	own   bool
	slots uint8
}

// CloneIn is Clone for a call that ends before the next one begins: its writes use r.
func (s *State) CloneIn(r *Room) State { return State{slots: s.slots, room: r} }

// Replace makes after, a clone of s in r, the state in place of s. What only s held, artifacts that
// Get has lent included, is used again.
func (r *Room) Replace(s, after *State) {
	old, now := s.slots, after.slots
	*s = State{slots: now}
	if old == now {
		return
	}
	set := uint8(0)
	for left := after.written; left != 0; left &= left - 1 {
		n, bit := bits.TrailingZeros8(left), left&-left
		if now[n] != nil {
			set |= bit
		}
		if !r.own {
			continue
		}
		if h := old[n]; r.slots&bit != 0 && h != now[n] {
			*h = held{}
			r.held = h
		}
		old[n] = nil // nothing that is out of use is kept alive
	}
	if r.own {
		r.contents = old
	}
	r.own, r.slots = true, r.slots&^after.written|set
}

// Share is to be called before the state is copied for longer than a call, and after it was
// replaced in another way than by Replace.
func (r *Room) Share() { *r = Room{held: r.held} }

// newContents returns contents to be overwritten.
func (r *Room) newContents() *contents {
	if r == nil || r.contents == nil {
		return new(contents)
	}
	c := r.contents
	r.contents = nil
	return c
}

// newHeld returns an artifact to be overwritten.
func (r *Room) newHeld() *held {
	if r == nil || r.held == nil {
		return new(held)
	}
	h := r.held
	r.held = nil
	return h
}
