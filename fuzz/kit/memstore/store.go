package memstore

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"trunkline/engine/journal"
)

// Store is a journal.Store on a Disk. After a crash of the disk, or another Open, every call is an
// error.
type Store struct{ disk *Disk }

// tearing is a Store whose disk may tear.
type tearing struct{ *Store }

// MayTear implements journal.Tearing.
func (tearing) MayTear() bool { return true }

// enter locks the disk for a store that is still open.
func (s *Store) enter() (*Disk, error) {
	s.disk.mu.Lock()
	if s.disk.open != s {
		s.disk.mu.Unlock()
		return nil, errGone
	}
	return s.disk, nil
}

// write is enter for what may fail; then it waits as long as the disk takes.
func (s *Store) write(syncs bool) (*Disk, error) {
	d, err := s.enter()
	if err != nil {
		return nil, err
	}
	if d.writes++; d.failAt > 0 && d.writes >= d.failAt {
		defer d.mu.Unlock()
		return nil, d.failWith
	}
	if d.delay == 0 || !syncs {
		return d, nil
	}
	delay := d.delay
	d.mu.Unlock()
	time.Sleep(delay)
	return s.enter()
}

// sync makes everything durable. The caller holds mu.
func (d *Disk) sync() {
	if d.opts.Lie {
		return
	}
	for i := len(d.blocks) - 1; i >= 0 && !d.blocks[i].synced; i-- {
		d.blocks[i].synced = true
	}
	for _, g := range d.gens {
		g.synced = g.committed
	}
	d.dropped = nil
	clear(d.lost)
}

// WriteBlock implements journal.Store. While it runs, and when it fails, a crash may keep the block
// like any other that is not synced.
func (s *Store) WriteBlock(first journal.Index, block []byte) error {
	d, err := s.enter()
	if err != nil {
		return err
	}
	if n := len(d.blocks); n > 0 && first <= d.blocks[n-1].first {
		defer d.mu.Unlock()
		return fmt.Errorf("cannot write block at %d: the last one is at %d", first, d.blocks[n-1].first)
	}
	d.writes++
	fails := d.failAt > 0 && d.writes >= d.failAt
	if !fails || d.rand.IntN(2) == 0 {
		d.blocks = append(d.blocks, entry{first: first, data: slices.Clone(block)})
	}
	defer func() { d.mu.Unlock() }()
	switch {
	case fails:
		return d.failWith
	case d.opts.Interval:
		return nil
	case d.delay > 0:
		delay := d.delay
		d.mu.Unlock()
		time.Sleep(delay)
		d.mu.Lock()
		if d.open != s {
			return errGone
		}
	}
	d.sync()
	return nil
}

// Sync implements journal.Store.
func (s *Store) Sync() error {
	d, err := s.write(true)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	d.sync()
	return nil
}

// at returns the position of the block that holds an index, or of the first after it. The caller
// holds mu.
func (d *Disk) at(i journal.Index) int {
	n := sort.Search(len(d.blocks), func(k int) bool { return d.blocks[k].first > i })
	return max(n-1, 0)
}

// Blocks implements journal.Store. f is called without a lock.
func (s *Store) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	d, err := s.enter()
	if err != nil {
		return err
	}
	blocks := slices.Clone(d.blocks[d.at(from):])
	d.mu.Unlock()
	for _, e := range blocks {
		if err := lend(e.data, func(b []byte) error { return f(e.first, b) }); err != nil {
			return err
		}
	}
	return nil
}

// lend calls f with a copy of b and overwrites it afterwards, so that a caller that keeps it is
// found.
func lend(b []byte, f func([]byte) error) error {
	c := slices.Clone(b)
	defer func() {
		for i := range c {
			c[i] ^= 0x5a
		}
	}()
	return f(c)
}

// DropBlocks implements journal.Store. It is not durable before the next sync.
func (s *Store) DropBlocks(upTo journal.Index) error {
	d, err := s.write(false)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	n := d.at(upTo)
	d.dropped = append(d.dropped, d.blocks[:n]...)
	d.blocks = slices.Clone(d.blocks[n:])
	return nil
}

// CutBlocks implements journal.Store.
func (s *Store) CutBlocks(from journal.Index) error {
	d, err := s.write(true)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	n := sort.Search(len(d.blocks), func(k int) bool { return d.blocks[k].first >= from })
	d.blocks = d.blocks[:n]
	d.sync()
	return nil
}

// Close implements journal.Store.
func (s *Store) Close() error {
	d, err := s.enter()
	if err != nil {
		return nil
	}
	defer d.mu.Unlock()
	if d.failAt == 0 || d.writes < d.failAt {
		d.sync()
	}
	d.open = nil
	return nil
}
