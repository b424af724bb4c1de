package supervisor

import (
	"sync"
	"time"
)

// maxBusy bounds the runtimes that are known to be busy.
const maxBusy = 4096

// busy holds the runtimes at which a person was seen, until the quiet window after that is over.
type busy struct {
	quiet time.Duration
	most  int

	mu   sync.Mutex
	seen map[string]time.Time
}

func (b *busy) note(runtime string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.seen[runtime]; !known && len(b.seen) >= b.most {
		b.makeRoom(now)
	}
	b.seen[runtime] = now
}

// makeRoom forgets what is over, or else the oldest. Caller holds mu.
func (b *busy) makeRoom(now time.Time) {
	oldest := ""
	for runtime, at := range b.seen {
		if now.Sub(at) >= b.quiet {
			delete(b.seen, runtime)
		} else if oldest == "" || at.Before(b.seen[oldest]) {
			oldest = runtime
		}
	}
	if len(b.seen) >= b.most {
		delete(b.seen, oldest)
	}
}

func (b *busy) forget(runtime string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, runtime)
}

func (b *busy) is(runtime string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, known := b.seen[runtime]
	return known && now.Sub(at) < b.quiet
}
