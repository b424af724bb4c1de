package supervisor

import (
	"sync"
	"time"
)

// Machine is what the Supervisors of one machine share: room for attempts, and the runtimes at
// which a person was seen. Any goroutine may call its methods.
type Machine struct {
	parallel int
	busy     busy

	mu       sync.Mutex
	attempts int // that are under way, or that a claim may begin
	runs     int // commands among them
	claims   int // that go on
	// waiting are those that had less than all of the room. The value is set where a claim went
	// on, which may not use its room.
	waiting map[*Supervisor]bool
}

// NewMachine returns one with room for so many attempts at a time; 0: none is claimed. quiet is how
// long a person who was seen at a runtime is expected there.
func NewMachine(parallel int, quiet time.Duration) *Machine {
	return &Machine{parallel: parallel, busy: busy{quiet: quiet, most: maxBusy, seen: map[string]time.Time{}}, waiting: map[*Supervisor]bool{}}
}

// HumanTyping reports whether a person is expected at a runtime: a delivery found one there less
// than the quiet window ago.
func (m *Machine) HumanTyping(runtime string) bool { return m.busy.is(runtime, time.Now()) }

// take gives all the room to a claim of s, which settle ends. Without room there is none. One place
// is kept for a delivery: commands run for minutes, and must not hold up what takes a moment.
func (m *Machine) take(s *Supervisor) (attempts, runs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	attempts = m.parallel - m.attempts
	runs = max(0, min(attempts, max(1, m.parallel-1)-m.runs))
	delete(m.waiting, s)
	if attempts < m.parallel {
		m.waiting[s] = m.claims > 0
	}
	if attempts > 0 {
		m.attempts, m.runs, m.claims = m.attempts+attempts, m.runs+runs, m.claims+1
	}
	return attempts, runs
}

// settle ends the claim of s, and gives back what it has not used.
func (m *Machine) settle(s *Supervisor, attempts, runs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims--
	m.free(s, attempts, runs, true)
}

// finish gives back the place of an attempt.
func (m *Machine) finish(s *Supervisor, runs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free(s, 1, runs, false)
}

// free gives room back, and wakes those that wait for it. unused: it was that of a claim, which all
// that looked at another time have seen free. Caller holds mu.
func (m *Machine) free(by *Supervisor, attempts, runs int, unused bool) {
	m.attempts, m.runs = m.attempts-attempts, m.runs-runs
	for s, late := range m.waiting {
		if s != by && (late || !unused) {
			delete(m.waiting, s)
			s.Wake()
		}
	}
}

// leave forgets a Supervisor that has ended.
func (m *Machine) leave(s *Supervisor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, s)
}

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
