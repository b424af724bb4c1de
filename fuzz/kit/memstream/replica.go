package memstream

import (
	"errors"

	"trunkline/engine/journal/replicated"
)

// Heal has the replica that the client reads be whole again, as another one in its place.
func (c *Client) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = nil
	clear(c.rot)
}

var errMissing = errors.New("the replica does not have the message")

// Held implements replicated.Replica.
func (c *Client) Held() (replicated.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	st := replicated.State{First: c.log.first, Last: c.log.last()}
	for _, seq := range c.lost {
		if seq >= st.First && seq <= st.Last {
			st.Deleted++
		}
	}
	if c.gone {
		return replicated.State{}, errGone
	}
	return st, nil
}

// Load implements replicated.Replica.
func (c *Client) Load(seq uint64, f func(m *replicated.Message) error) error {
	m, _ := c.next(seq)
	if m == nil || m.Seq != seq {
		return errMissing
	}
	return f(m)
}
