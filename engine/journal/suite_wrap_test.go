package journal_test

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"trunkline/engine/journal"
)

// gated is a store whose WriteBlock waits while the gate is shut, and counts.
type gated struct {
	journal.Store
	gate   sync.RWMutex
	writes atomic.Int64
	begun  chan struct{} // gets one for each write that begins
}

func newGated(s journal.Store) *gated {
	return &gated{Store: s, begun: make(chan struct{}, 1<<16)}
}

// WriteBlock implements journal.Store.
func (g *gated) WriteBlock(first journal.Index, block []byte) error {
	g.begun <- struct{}{}
	g.gate.RLock()
	defer g.gate.RUnlock()
	g.writes.Add(1)
	return g.Store.WriteBlock(first, block)
}

var errBroken = errors.New("the disk is broken")

// broken is a store that fails from the n-th block on, without writing it.
type broken struct {
	journal.Store
	left  int
	calls atomic.Int64
}

// WriteBlock implements journal.Store.
func (b *broken) WriteBlock(first journal.Index, block []byte) error {
	b.calls.Add(1)
	if b.left--; b.left < 0 {
		return errBroken
	}
	return b.Store.WriteBlock(first, block)
}

// altered is a store that reads one block as something else, nil: not at all.
type altered struct {
	journal.Store
	at     journal.Index
	change func(b []byte) []byte
	tears  bool
}

// Blocks implements journal.Store.
func (a *altered) Blocks(from journal.Index, f func(first journal.Index, b []byte) error) error {
	return a.Store.Blocks(from, func(first journal.Index, b []byte) error {
		if first == a.at {
			if b = a.change(bytes.Clone(b)); b == nil {
				return nil
			}
		}
		return f(first, b)
	})
}

// MayTear implements journal.Tearing.
func (a *altered) MayTear() bool { return a.tears }

// blocks returns the first indexes of the blocks of a place that no one has open, with their bytes.
func blocks(t tb, p Place) (firsts []journal.Index, data map[journal.Index][]byte) {
	t.Helper()
	s, err := p.Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	data = make(map[journal.Index][]byte)
	err = s.Blocks(1, func(first journal.Index, b []byte) error {
		firsts = append(firsts, first)
		data[first] = bytes.Clone(b)
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatalf("read blocks: %v", err)
	}
	return firsts, data
}
