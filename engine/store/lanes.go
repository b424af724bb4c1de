package store

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"trunkline/engine/journal"
)

// Bounds of a recovery's memory beside the state itself: bundles times MaxLaneRecord, and once more
// what one record of the log needs.
const (
	// MaxLaneRecord is how much of the log is handed on at a time, and so the longest record of a
	// parallel machine.
	MaxLaneRecord = 512 << 10
	// bundles is how many there are at most: one that is filled, one that is worked off, and one
	// each that smooths their speeds.
	bundles = 4
	// maxLanes is how many goroutines one that reads can keep busy.
	maxLanes = 8
)

// Recovery takes back the state of a machine along several lanes. One goroutine, the owner's,
// routes the records in order; each lane is worked off by one goroutine at a time, in the order in
// which its records were routed. What is in no order is decided by the routing.
type Recovery interface {
	Lanes() []Lane
	// Route returns the lane that takes a record: of a snapshot where index is 0, else of the log.
	Route(rec []byte, index journal.Index) (Route, error)
	// Lenient begins the replay of what the snapshot may hold already: records up to an index.
	// Settle begins the replay of the rest. The lanes are idle during both.
	Lenient(upTo journal.Index)
	Settle()
	// Finish ends the recovery, with the latest clock reading of all records. No lane is at work.
	Finish() (latest int64, err error)
}

// Lane takes the records that were routed to it.
type Lane interface {
	// Take takes a record: of a snapshot where index is 0, else of the log. applied reports whether
	// it changed something. hash is that of its Route.
	Take(rec []byte, index journal.Index, hash uint64) (applied bool, err error)
	// Warm fetches what records of up to MaxWarm hashes are about towards the processor.
	Warm(hashes []uint64) uint32
}

// Route is where a record goes.
type Route struct {
	// Lane is NoLane for a record that the routing has dealt with.
	Lane int
	// Hash is for Take and Warm. What records of equal low bits (nearBits) are about is near each
	// other in the memory, and the others are independent of them.
	Hash uint64
	// Follow is the part of the record for Parallel.Follow, where the change is applied; nil:
	// nothing follows.
	Follow []byte
}

// NoLane is the Lane of a record that the routing has dealt with.
const NoLane = -1

// MaxWarm is how many look-ups Warm has in flight at a time: about what a core's reorder window can
// overlap.
const MaxWarm = 16

// nearBits is how many bits of a hash decide in which order a lane takes the records of a bundle.
const nearBits = 6

// lanes works off the records of parallel machines on goroutines of its own, while its owner reads
// on. What has to keep the order of all records is done by the owner, when the lanes are through
// with the bundle.
type lanes struct {
	rec     Recovery                                    // nil: no machine is parallel
	finish  func(b *bundle, before journal.Index) error // does what has to keep the order, of the records before an index
	in      []chan *bundle
	running sync.WaitGroup

	open  *bundle   // being filled; nil: none
	sent  []*bundle // in order
	free  []*bundle
	made  int
	err   error // the first in the order of the records
	loads bool  // the records are of a snapshot
}

// bundle is some records in a row.
type bundle struct {
	buf     []byte
	lanes   [][]task
	ordered []step // what has to keep the order of all records
	loads   bool
	errs    []failure // of each lane
	done    uint64    // how far the recovery is with it
	working sync.WaitGroup
}

// task is a record of one lane.
type task struct {
	index   journal.Index
	hash    uint64
	rec     []byte
	applied bool
}

// failure is the first record that a lane could not take.
type failure struct {
	index journal.Index
	err   error
}

// newLanes starts the goroutines; stop ends them. There are none without a parallel machine.
func newLanes(m Parallel, finish func(*bundle, journal.Index) error) *lanes {
	p := &lanes{finish: finish}
	if m == nil {
		return p
	}
	p.rec = m.Recover(min(runtime.GOMAXPROCS(0), maxLanes))
	for i, lane := range p.rec.Lanes() {
		in := make(chan *bundle, bundles)
		p.in = append(p.in, in)
		p.running.Go(func() { work(lane, i, in) })
	}
	return p
}

// stop ends the goroutines.
func (p *lanes) stop() {
	for _, in := range p.in {
		close(in)
	}
	p.running.Wait()
}

// work is one lane. After a failure it lets everything pass.
func work(lane Lane, i int, in <-chan *bundle) {
	failed := false
	var order []uint32
	hashes := make([]uint64, 0, MaxWarm)
	for b := range in {
		if !failed {
			order = byHash(order, b.lanes[i])
			b.errs[i] = b.work(lane, b.lanes[i], order, hashes)
			failed = b.errs[i].err != nil
		}
		b.working.Done()
	}
}

// byHash returns the places of the tasks in order of the low bits of their hashes, those of equal
// bits in their own order. It uses the memory of order. Rows are written one behind the other
// within a shard, and the memory keeps up where some of one shard come in a row.
func byHash(order []uint32, tasks []task) []uint32 {
	var starts [1 << nearBits]uint32
	for i := range tasks {
		starts[tasks[i].hash%(1<<nearBits)]++
	}
	sum := uint32(0)
	for n, count := range starts {
		starts[n], sum = sum, sum+count
	}
	order = slices.Grow(order[:0], len(tasks))[:len(tasks)]
	for i := range tasks {
		at := &starts[tasks[i].hash%(1<<nearBits)]
		order[*at] = uint32(i)
		*at++
	}
	return order
}

// work takes the tasks in the given order up to the first one, by index, that cannot be taken.
// hashes is scratch.
func (b *bundle) work(lane Lane, tasks []task, order []uint32, hashes []uint64) (first failure) {
	for j, at := range order {
		if j%MaxWarm == 0 {
			hashes = hashes[:0]
			for _, next := range order[j:min(j+MaxWarm, len(order))] {
				hashes = append(hashes, tasks[next].hash)
			}
			lane.Warm(hashes)
		}
		t := &tasks[at]
		if first.err != nil && t.index > first.index {
			continue
		}
		index := t.index
		if b.loads {
			index = 0
		}
		var err error
		if t.applied, err = lane.Take(t.rec, index, t.hash); err != nil {
			first = failure{t.index, err}
		}
	}
	return first
}

// room returns the bundle to put n more bytes into. It does not move while it is filled.
func (p *lanes) room(n int) (*bundle, error) {
	if n > MaxLaneRecord {
		return nil, fmt.Errorf("%w: %d bytes", errBadRecord, n)
	}
	if p.open != nil && len(p.open.buf)+n > MaxLaneRecord {
		if err := p.send(); err != nil {
			return nil, err
		}
	}
	if p.open == nil {
		p.open = p.take()
		p.open.loads = p.loads
	}
	return p.open, p.err
}

// take returns an empty bundle, waiting for the oldest one if there are enough.
func (p *lanes) take() *bundle {
	if len(p.free) == 0 && p.made == bundles {
		p.settle()
	}
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	p.made++
	return &bundle{buf: make([]byte, 0, MaxLaneRecord), lanes: make([][]task, len(p.in)), errs: make([]failure, len(p.in))}
}

// keep copies a record into b.
func (b *bundle) keep(rec []byte) []byte {
	start := len(b.buf)
	b.buf = append(b.buf, rec...)
	return b.buf[start:len(b.buf):len(b.buf)]
}

// send hands the open bundle to the lanes.
func (p *lanes) send() error {
	b := p.open
	if b == nil {
		return p.err
	}
	p.open = nil
	p.sent = append(p.sent, b)
	for i, tasks := range b.lanes {
		if len(tasks) > 0 {
			b.working.Add(1)
			p.in[i] <- b
		}
	}
	return p.err
}

// settle waits for the oldest bundle and ends it.
func (p *lanes) settle() {
	b := p.sent[0]
	p.sent = append(p.sent[:0], p.sent[1:]...)
	b.working.Wait()
	if p.err == nil {
		first := b.failure()
		if p.err = p.finish(b, first.index); p.err == nil && first.err != nil {
			p.err = b.cannot(first.index, first.err)
		}
	}
	b.reset()
	p.free = append(p.free, b)
}

// failure returns the first of the failures; its index is the largest if there is none.
func (b *bundle) failure() failure {
	first := failure{index: ^journal.Index(0)}
	for _, f := range b.errs {
		if f.err != nil && f.index < first.index {
			first = f
		}
	}
	return first
}

func (b *bundle) cannot(i journal.Index, err error) error {
	if b.loads {
		return err
	}
	return fmt.Errorf("cannot replay record %d: %w", i, err)
}

func (b *bundle) reset() {
	b.buf, b.ordered = b.buf[:0], b.ordered[:0]
	for i := range b.lanes {
		b.lanes[i], b.errs[i] = b.lanes[i][:0], failure{}
	}
}

// drain waits until everything that was put in is done, and returns the first error in the order of
// the records.
func (p *lanes) drain() error {
	_ = p.send()
	for len(p.sent) > 0 {
		p.settle()
	}
	return p.err
}
