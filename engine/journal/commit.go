package journal

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// commit is the committer: it writes one group after the other, each as one block. It alone moves
// Durable, and it alone stops the journal.
func (l *Log) commit(p Pipelined) {
	defer close(l.done)
	if !l.single {
		l.commitPipelined(p, p.InFlight())
		return
	}
	to := l.store.WriteBlock
	for {
		g, err := l.next()
		if g == nil {
			l.end(err)
			return
		}
		start := l.cfg.Now()
		block, err := l.write(g, start, to)
		if err != nil {
			l.end(err)
			return
		}
		took := l.cfg.Now().Sub(start)
		l.cfg.OnWritten(g.waited(start), took)
		l.acknowledge(g, block, took)
	}
}

// next waits for the oldest group and takes it. nil is the end, with an error after a failure.
func (l *Log) next() (*group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.idle = true; !l.due() && (l.phase < closing || l.requests > 0) && l.stopCause == nil; {
		l.wait()
	}
	if l.idle = false; l.late > 0 {
		l.late = 0
		l.overtaken.Broadcast()
	}
	if l.stopCause != nil {
		return nil, l.stopCause
	}
	l.linger.end()
	return l.queue.take(), nil
}

// wait waits for a signal, or for the end of a linger. The caller holds mu, and not while it waits.
func (l *Log) wait() {
	g, n := &l.linger, l.linger.n
	var expired <-chan time.Time
	if g.target > 0 {
		expired = g.timer.C
	}
	l.mu.Unlock()
	select {
	case <-l.work:
		l.mu.Lock()
	case <-expired:
		if l.mu.Lock(); g.n == n && !l.due() { // else another one has begun, or it was of use
			g.target, g.expired = 0, true
		}
	}
}

// signal has the committer look again.
func (l *Log) signal() {
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// write makes the block of a group and hands it to the store.
func (l *Log) write(g *group, now time.Time, to func(first Index, block []byte) error) (block []byte, err error) {
	h := l.nextHeader(kindRecords, g.count, now)
	var chain uint64
	block, chain = seal(g.buf, &h)
	if h.first != g.first {
		return nil, fmt.Errorf("cannot write block: it starts at index %d, the log ends at %d", g.first, l.tail.last)
	}
	if err := to(h.first, block); err != nil {
		return nil, fmt.Errorf("cannot write block at index %d: %w", h.first, err)
	}
	l.tail.last, l.tail.chain = h.last(), chain
	return block, nil
}

// nextHeader returns the header of a block at the end of the log.
func (l *Log) nextHeader(k kind, count uint32, now time.Time) header {
	l.clock.last = l.time.Load()
	t := l.clock.next(now, l.cfg.Elapsed(), l.cfg.Logger)
	l.time.Store(t)
	return header{
		kind:      k,
		mode:      l.cfg.Mode,
		partition: l.cfg.Partition,
		epoch:     l.tail.epoch,
		first:     l.tail.last + 1,
		count:     count,
		time:      t,
		prev:      l.tail.chain,
	}
}

// acknowledge makes a written group durable for everyone and takes its buffer back.
func (l *Log) acknowledge(g *group, block []byte, took time.Duration) {
	last := g.first + uint64(g.count) - 1
	l.counters.group(g.count, len(block))
	l.durable.Store(last)
	l.cfg.OnDurable(last)
	g.buf = block
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.release(g, int64(len(block)-frameBytes))
	if l.phase == open && l.stopCause == nil && l.queue.bytes < l.cfg.MaxQueueBytes && l.queue.records < int64(l.cfg.MaxQueueRecords) {
		l.full.Store(false)
	}
	if l.linger.begin(int64(g.count), l.queue.records, took) && l.idle {
		l.signal() // it waits without an end
	}
	l.announce()
}

// announce wakes everyone in wait. The caller holds mu.
func (l *Log) announce() {
	if l.progress != nil {
		close(l.progress)
		l.progress = nil
	}
}

// end is the last act of the committer: after a Close, or with the error that stops the journal.
func (l *Log) end(err error) {
	l.mu.Lock()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrFailed, err)
		l.failure.Store(&err)
	}
	l.phase = ended
	l.full.Store(true)
	l.queue.drop()
	l.announce()
	l.mu.Unlock()
	if err != nil {
		l.cfg.Logger.Error("journal stopped", "durable", l.Durable(), "err", err)
		l.cfg.OnFailure(err)
	}
}

// Barrier returns when everything that was appended before the call is durable. It returns the
// error of ctx, or why the journal stopped before. It writes nothing.
func (l *Log) Barrier(ctx context.Context) error {
	return l.Await(ctx, l.Appended())
}

// Await is Barrier for what was appended up to an index.
func (l *Log) Await(ctx context.Context, to Index) error {
	for l.Durable() < to {
		l.mu.Lock()
		l.ask(to)
		if l.phase == ended {
			l.mu.Unlock()
			return l.wasReached(to)
		}
		if l.progress == nil {
			l.progress = make(chan struct{})
		}
		progress := l.progress
		l.mu.Unlock()
		if l.Durable() >= to {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// wasReached answers for a journal that has ended.
func (l *Log) wasReached(to Index) error {
	if l.Durable() >= to {
		return nil
	}
	return l.Err()
}

// Pipelined is implemented by a store that takes a block while earlier ones are on their way, as
// one over a network does. A Log then uses the two halves of WriteBlock for all but its claim.
type Pipelined interface {
	// InFlight is how many blocks may be begun and not awaited, at least 1.
	InFlight() int
	// BeginBlock begins what WriteBlock does and returns at once. block is lent until AwaitBlock
	// has returned for it.
	BeginBlock(first Index, block []byte) error
	// AwaitBlock ends what BeginBlock began, for the oldest block that was not awaited. After an
	// error it returns one for every later block. It may run beside BeginBlock.
	AwaitBlock() error
}

// flight is a group whose block was begun.
type flight struct {
	group  *group
	block  []byte
	begun  time.Time
	waited time.Duration
}

// commitPipelined is commit for a store that takes several blocks at a time. This goroutine begins
// them, and another one awaits and acknowledges them in order.
func (l *Log) commitPipelined(p Pipelined, inFlight int) {
	// One more is with the goroutine that awaits, and one waits to be sent.
	flights := make(chan flight, inFlight-2)
	awaited := make(chan error, 1)
	go func() { awaited <- l.await(p, flights) }()
	var err error
	for {
		var g *group
		if g, err = l.next(); g == nil {
			break
		}
		f := flight{group: g, begun: l.cfg.Now(), waited: g.waited(l.cfg.Now())}
		if f.block, err = l.write(g, f.begun, p.BeginBlock); err != nil {
			break
		}
		flights <- f
	}
	close(flights)
	l.end(cmp.Or(<-awaited, err))
}

// await acknowledges what was begun, in order, until the first block that fails.
func (l *Log) await(p Pipelined, flights <-chan flight) (failed error) {
	for f := range flights {
		err := p.AwaitBlock()
		if failed != nil {
			continue
		}
		if err != nil {
			failed = fmt.Errorf("cannot write block at index %d: %w", f.group.first, err)
			l.mu.Lock()
			l.fail(failed)
			l.mu.Unlock()
			continue
		}
		took := l.cfg.Now().Sub(f.begun)
		l.cfg.OnWritten(f.waited, took)
		l.acknowledge(f.group, f.block, took)
	}
	return failed
}

// Bounds of a linger.
const (
	// minLinger is the shortest write that a linger is worth its timer for.
	minLinger = 100 * time.Microsecond
	// MaxLinger is the longest that a group waits for more records.
	MaxLinger = 4 * time.Millisecond
	// maxLingerSkips is how many groups go without a linger at most, before one is tried again.
	maxLingerSkips = 255
)

// linger (as linger.ms of Kafka; not that of a socket, which engine/stream has) delays a group for
// records that will come soon, because a write costs the same for one record as for many. Clients
// that wait for each reply all send again once a group is acknowledged. Without a linger the first
// of them are written alone while the others wait: two half groups take turns, with twice the
// writes.
//
// A linger ends when as many records wait as were in flight at the last acknowledgement, less an
// eighth, or after twice the time of a write. It was useful if that many came, and if few more came
// during the write. After a useless linger the next group goes without one, then three, seven and
// so on. Log.mu guards it.
type linger struct {
	target   int64         // records to wait for; 0: no linger
	took     time.Duration // time of a write, smoothed
	lingered bool          // the group that was taken last
	expired  bool          // its linger ended by time
	skip     int           // groups that go without
	skips    int           // groups that went without after the last linger without use
	n        uint64        // counts lingers
	timer    *time.Timer
}

// begin starts the linger of the next group, if there is to be one, and reports whether there is. A
// group of acked records was acknowledged after a write that took some time, and other records wait
// already.
func (g *linger) begin(acked, waiting int64, took time.Duration) bool {
	g.took += (took - g.took) / 8
	if g.lingered {
		if g.expired || waiting > acked/4 {
			g.skips = min(2*g.skips+1, maxLingerSkips)
			g.skip = g.skips
		} else {
			g.skips = 0
		}
		g.lingered, g.expired = false, false
	}
	if g.skip > 0 {
		g.skip--
		return false
	}
	target := acked + waiting
	target -= target / 8
	if g.took < minLinger || target <= max(waiting, 1) {
		return false
	}
	g.target, g.n = target, g.n+1
	g.timer.Reset(min(2*g.took, MaxLinger))
	return true
}

// end is called when a group is taken.
func (g *linger) end() {
	g.lingered = g.target > 0 || g.expired
	g.target = 0
}
