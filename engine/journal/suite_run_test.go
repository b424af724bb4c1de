package journal_test

import (
	"context"

	"trunkline/engine/journal"
)

// runProgram interprets a program on a place and compares the journal with a slice after every step
// that could lose something. Each byte is an operation: its lowest three bits are which, the others
// how much.
func runProgram(t tb, p Place, program []byte) {
	t.Helper()
	m := &model{t: t, place: p, all: map[journal.Index]string{}}
	defer func() {
		if m.life != nil {
			_ = m.life.log.Close() // for one that a failure left open
		}
	}()
	m.begin()
	for _, op := range program {
		m.step(op&7, int(op>>3))
	}
	m.close()
	m.begin()
	m.close()
}

// model is what the journal must hold.
type model struct {
	t     tb
	place Place
	life  *life
	all   map[journal.Index]string // everything appended
	safe  journal.Index            // what a power loss must leave
}

func (m *model) step(op byte, n int) {
	switch op {
	case 0, 1:
		m.append(n, 20)
	case 2:
		m.append(1, n*n*8)
	case 3:
		m.barrier()
	case 4:
		m.snapshot()
	case 5:
		m.close()
		m.begin()
	case 6:
		m.end(m.place.Kill, m.life.log.Durable)
	case 7:
		m.end(m.place.Crash, func() journal.Index {
			if m.place.Mode == journal.Always {
				return m.life.log.Durable()
			}
			return m.safe
		})
	}
}

func (m *model) append(n, size int) {
	m.life.appendMany(n, size)
}

func (m *model) barrier() {
	if err := m.life.log.Barrier(context.Background()); err != nil || m.life.log.Durable() != m.life.log.Appended() {
		m.t.Fatalf("barrier: %v, durable %d of %d", err, m.life.log.Durable(), m.life.log.Appended())
	}
}

func (m *model) snapshot() {
	if err := m.life.snapshot(); err != nil {
		m.t.Fatalf("snapshot: %v", err)
	}
	m.safe = m.life.log.Appended()
}

func (m *model) close() {
	m.life.close()
	m.all, m.safe = m.life.state, m.life.log.Durable()
	if m.safe != m.life.log.Appended() {
		m.t.Fatalf("closed with %d durable of %d", m.safe, m.life.log.Appended())
	}
}

// end ends a life without Close; safe is what must be left.
func (m *model) end(how func(), safe func() journal.Index) {
	if how == nil {
		return
	}
	before := safe()
	how()
	_ = m.life.log.Close() // the disk is gone: what it states does not matter
	m.all, m.safe = m.life.state, before
	m.begin()
}

// begin starts a life and compares: all that was safe is there, and what is there is a prefix of
// what was appended.
func (m *model) begin() {
	m.life = begin(m.t, m.place, smallBlocks)
	last := m.life.log.Appended() - 1
	if last < m.safe {
		m.t.Fatalf("the log ends at %d, but %d was safe", last, m.safe)
	}
	m.life.wantState(upTo(m.all, last))
	m.safe = last + 1
}
