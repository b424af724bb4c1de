package linktest

import (
	"sync"

	"trunkline/engine/connection"
)

// Limits are small enough for tests to reach, timers off.
func Limits() connection.Limits {
	return connection.Limits{
		UnsentBytes: 64 << 10,
		ChunkBytes:  16 << 10,
		FrameBytes:  8 << 20,
		DrainWithin: 2e9,
	}
}

// Book opens sessions and remembers them in order.
type Book struct {
	Limits connection.Limits

	mu       sync.Mutex
	sessions []*Session
}

// Open is a connection.Opener.
func (b *Book) Open(p *connection.Port) connection.Session {
	s := newSession(p, b.Limits)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions = append(b.sessions, s)
	return s
}

// All returns the sessions opened so far.
func (b *Book) All() []*Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*Session(nil), b.sessions...)
}

// Last returns the session opened last, or nil.
func (b *Book) Last() *Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sessions) == 0 {
		return nil
	}
	return b.sessions[len(b.sessions)-1]
}
