package ipc

import (
	"sync"
	"sync/atomic"
)

// letter is one thing that came to pass away from the connection's owner.
type letter struct {
	frame    []byte        // a whole frame, sent as it is
	asked    asked         // what it answers
	query    *pendingQuery // the query this answers, if any
	unblocks bool          // the listing that blocked the connection is done
}

// mailbox passes letters to a connection's owner. While it has more bytes than may be unsent, the
// connection is not read. What was asked before is bounded by room and by the pending queries.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
	bytes   atomic.Int64 // of the letters' frames; written under mu
}

func (m *mailbox) put(l letter) {
	m.mu.Lock()
	m.letters = append(m.letters, l)
	m.bytes.Add(int64(len(l.frame)))
	m.mu.Unlock()
}

// room reports whether n more bytes stay within the bound.
func (m *mailbox) room(n int, bound int64) bool { return m.bytes.Load()+int64(n) <= bound }

func (m *mailbox) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.letters
	m.letters = nil
	m.bytes.Store(0)
	return l
}

func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.letters) == 0
}
