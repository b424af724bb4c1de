package ipc

import "sync"

// letter is one thing that came to pass away from the connection's owner.
type letter struct {
	frame    []byte        // whole frames, sent as they are
	query    *pendingQuery // the query this answers, if any
	unblocks bool          // the listing that held the connection is done
}

// mailbox passes letters to a connection's owner. It holds no more than one letter per pending query and one for a listing,
// both of which are bounded server-wide.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
}

func (m *mailbox) put(l letter) {
	m.mu.Lock()
	m.letters = append(m.letters, l)
	m.mu.Unlock()
}

func (m *mailbox) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.letters
	m.letters = nil
	return l
}

func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.letters) == 0
}
