package journal

import (
	"cmp"
	"fmt"
	"time"
)

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
