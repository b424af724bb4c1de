package memstore

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"trunkline/engine/journal"
)

// errInjected is the error of a write that fails without an error of its own.
var errInjected = errors.New("injected failure")

// errGone is what the store of a crashed process gives.
var errGone = errors.New("cannot use store: it was closed, or its disk crashed")

// Options are the behaviour of a Disk. The zero value is a correct disk.
type Options struct {
	// Seed decides what a crash leaves of the unsynced.
	Seed uint64
	// Interval leaves blocks unsynced until Sync, as journal.Interval does; otherwise WriteBlock
	// syncs.
	Interval bool
	// Tear has a crash leave a part of an unsynced block, or rubbish of its length, as a plain file
	// would: the stores are journal.Tearing.
	Tear bool
	// Lie has WriteBlock, Sync and Commit return without syncing: a journal loses acknowledged
	// records.
	Lie bool
}

// Disk keeps what stores write. Its methods may be called from any goroutine.
type Disk struct {
	opts Options

	mu       sync.Mutex
	rand     *rand.Rand
	blocks   []entry // in order
	dropped  []entry // not yet for good
	gens     map[uint64]*snapshot
	lost     map[uint64]*snapshot // dropped, not yet for good
	open     *Store
	writes   int
	failAt   int
	failWith error
	delay    time.Duration
}

type entry struct {
	first  journal.Index
	data   []byte
	synced bool
}

type snapshot struct {
	chunks    [][]byte
	meta      []byte
	committed bool
	synced    bool
}

// New returns an empty disk.
func New(opts Options) *Disk {
	return &Disk{
		opts: opts,
		rand: rand.New(rand.NewPCG(opts.Seed, 0x6a6f75726e616c)),
		gens: make(map[uint64]*snapshot),
		lost: make(map[uint64]*snapshot),
	}
}

// Open returns a store on the disk, as a process that starts does: journal.ErrLocked while there is
// one.
func (d *Disk) Open() (journal.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		return nil, journal.ErrLocked
	}
	for g, gen := range d.gens {
		if !gen.committed {
			delete(d.gens, g)
		}
	}
	d.open = &Store{disk: d}
	if d.opts.Tear {
		return tearing{d.open}, nil
	}
	return d.open, nil
}

// Crash ends the open store, as a power loss would. It leaves a random prefix of the unsynced
// blocks.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = nil
	d.keep(func(unsynced int) int { return d.rand.IntN(unsynced + 1) })
}

// CrashHard is Crash, but nothing unsynced is left.
func (d *Disk) CrashHard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = nil
	d.keep(func(int) int { return 0 })
}

// Kill ends the store that is open, as the death of its process would: what was written is left.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = nil
}

// keep drops unsynced blocks except those that choose allows, and may restore an unsynced drop.
func (d *Disk) keep(choose func(unsynced int) int) {
	synced := len(d.blocks)
	for synced > 0 && !d.blocks[synced-1].synced {
		synced--
	}
	left := choose(len(d.blocks) - synced)
	cut := slices.Clone(d.blocks[synced+left:])
	d.blocks = d.blocks[:synced+left]
	if d.opts.Tear && len(cut) > 0 && d.rand.IntN(2) == 0 {
		d.blocks = append(d.blocks, entry{first: cut[0].first, data: d.torn(cut[0].data)})
	}
	if d.rand.IntN(2) == 0 {
		d.blocks = append(d.dropped, d.blocks...)
		maps.Copy(d.gens, d.lost)
	}
	d.dropped = nil
	clear(d.lost)
	for g, gen := range d.gens {
		if !gen.committed || !gen.synced {
			delete(d.gens, g)
		}
	}
}

// torn returns what a crash leaves of a block: a part, zeros in place of a part, or rubbish.
func (d *Disk) torn(b []byte) []byte {
	cut := d.rand.IntN(len(b))
	switch d.rand.IntN(3) {
	case 0:
		return slices.Clone(b[:cut])
	case 1:
		t := slices.Clone(b)
		clear(t[cut:])
		return t
	}
	t := slices.Clone(b)
	for i := range t[cut:] {
		t[cut+i] = byte(d.rand.Uint32())
	}
	return t
}

// Delay makes every later write that syncs take this long. It sleeps, so that synctest can skip it.
func (d *Disk) Delay(each time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = each
}

// FailAt has the n-th write from now on fail, counted from 1, and every one after it: blocks,
// chunks, commits and syncs count. n <= 0 ends it. A nil error means errInjected.
func (d *Disk) FailAt(n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		err = errInjected
	}
	d.writes, d.failAt, d.failWith = 0, n, err
}

// FlipSnapshot flips a bit of chunk i of snapshot g, or of its meta where i is negative.
func (d *Disk) FlipSnapshot(g uint64, i, bit int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i < 0 {
		flip(d.gens[g].meta, bit)
		return
	}
	flip(d.gens[g].chunks[i], bit)
}

func flip(b []byte, bit int) {
	bit %= len(b) * 8
	b[bit/8] ^= 1 << (bit % 8)
}

// Remove takes out the block at position i, as a lost file or a hole would.
func (d *Disk) Remove(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocks = slices.Delete(d.blocks, i, i+1)
}

// SwapSnapshots exchanges what two snapshots hold, as files under wrong names would.
func (d *Disk) SwapSnapshots(a, b uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gens[a], d.gens[b] = d.gens[b], d.gens[a]
}

// SetBlock replaces the bytes of the block at position i.
func (d *Disk) SetBlock(i int, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocks[i].data = slices.Clone(data)
}

// Raw calls f with the chunks of all snapshots that were not dropped.
func (d *Disk) Raw(f func(chunk []byte)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, gen := range d.gens {
		for _, chunk := range gen.chunks {
			f(chunk)
		}
	}
}

// Firsts returns the first index of every block, oldest first.
func (d *Disk) Firsts() []journal.Index {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]journal.Index, len(d.blocks))
	for i, e := range d.blocks {
		out[i] = e.first
	}
	return out
}

// Block returns a copy of the block at position i.
func (d *Disk) Block(i int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.blocks[i].data)
}
