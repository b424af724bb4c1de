package workers

import "sync"

// tailSize is how much of a worker's stderr is kept: the last bytes (toolhost §4.9). A power of two.
const tailSize = 8 << 10

// tail keeps the last tailSize bytes written to it. The zero tail is empty.
type tail struct {
	mu  sync.Mutex
	buf []byte // allocated with the first byte: most workers write none
	n   uint64 // bytes written since reset
}

// Write keeps the end of p. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf == nil && len(p) > 0 {
		t.buf = make([]byte, tailSize)
	}
	for rest := p[max(len(p)-tailSize, 0):]; len(rest) > 0; {
		k := copy(t.buf[t.n%tailSize:], rest)
		rest, t.n = rest[k:], t.n+uint64(k)
	}
	return len(p), nil
}

// reset forgets what was written, so that no call is shown what a worker wrote during another.
func (t *tail) reset() {
	t.mu.Lock()
	t.n = 0
	t.mu.Unlock()
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n <= tailSize {
		return string(t.buf[:t.n])
	}
	at := t.n % tailSize
	return string(t.buf[at:]) + string(t.buf[:at])
}
