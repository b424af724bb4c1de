package journal

import (
	"context"
	"fmt"
	"time"
)

// commit is the committer: it writes one group after the other, each as one block. It alone moves
// Durable, and it alone stops the journal.
func (l *Log) commit() {
	defer close(l.done)
	if p, ok := l.store.(Pipelined); ok && p.InFlight() > 1 {
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
		l.work.Wait()
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
	l.linger.begin(int64(g.count), l.queue.records, took)
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
