// Package kit has what the tests of several packages need.
package kit

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Text is what a program or a logger writes, which is read meanwhile. The zero Text is empty. Its
// methods may be called from any goroutine.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String returns all that was written.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// Has reports whether something was written.
func (t *Text) Has(part string) bool { return strings.Contains(t.String(), part) }

// Logger returns one that writes to t.
func (t *Text) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(t, nil)) }
