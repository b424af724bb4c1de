package exacta

import "sync/atomic"

// Counts count what the projects of a server do. Any goroutine may read them.
type Counts struct {
	Events, StepsDone, StepsFailed atomic.Uint64
	entered                        [states]atomic.Uint64
}

// Entered returns how many transitions led to a state.
func (c *Counts) Entered(s State) uint64 { return c.entered[s].Load() }

// event counts an event of a project in a state.
func (c *Counts) event(name string, s State) {
	c.Events.Add(1)
	if name == "StateChanged" {
		c.entered[s].Add(1)
	}
}

// step counts a step that ended.
func (c *Counts) step(done bool) {
	if done {
		c.StepsDone.Add(1)
	} else {
		c.StepsFailed.Add(1)
	}
}

// States returns all states, in the order of texts.
func States() []State {
	all := make([]State, states)
	for s := range all {
		all[s] = State(s)
	}
	return all
}
