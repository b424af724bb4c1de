package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"trunkline/engine/journal"
)

// Defaults and limits of Config.
const (
	defaultLease = 5 * time.Second
	// defaultInFlight is where acknowledgements are fastest on three servers: with 64 writers more
	// blocks gain little, and with 1024 they make each block too small.
	defaultInFlight = 2
	// maxLease is below what a stream remembers of ids, so that a message sent again is known.
	maxLease = time.Minute
	// maxInFlight bounds how many blocks are on their way, of any version of the program that
	// shares a stream: a first append takes more sequences than that.
	maxInFlight = 4
	// fenceMarks go before a first append. One message that is no block may be on its way beside
	// the blocks, so that a first append takes one sequence more than what an owner has named.
	fenceMarks = maxInFlight + 1
	// maxParts bounds the messages of one block: servers store no more at once.
	maxParts = 900
	// askAgainAfter is how long the stream is left alone when it gives no answer at once.
	askAgainAfter = 20 * time.Millisecond
)

// Config is what a Store is made of.
type Config struct {
	// Stream keeps the log, and Chunks the snapshots that all nodes share.
	Stream Stream
	Chunks Chunks
	// Local keeps copies of the snapshots on this node. Of its methods those of journal.Snapshots
	// are used, Sync and Close. Store.Close closes it.
	Local journal.Store
	// Lease is how long after it has last sent what was stored an owner may send a message again
	// that got no answer. 0: defaultLease; at most maxLease.
	Lease time.Duration
	// InFlight is how many blocks may be on their way. 0: defaultInFlight; at most maxInFlight.
	InFlight int
	// Elsewhere is called where the node that answers for the stream has lost messages, with what
	// it has lost. It has another node answer, and reports whether one may: then they are asked for
	// again. nil: none may.
	Elsewhere func(ctx context.Context, lost error) bool
	// Elapsed reads a clock that runs evenly. nil: the time since Open.
	Elapsed func() time.Duration
	// Logger gets what an operator should know. nil: it is dropped.
	Logger *slog.Logger
}

func (c *Config) complete() error {
	c.Lease = cmp.Or(c.Lease, defaultLease)
	c.InFlight = cmp.Or(c.InFlight, defaultInFlight)
	if c.Elsewhere == nil {
		c.Elsewhere = func(context.Context, error) bool { return false }
	}
	if c.Elapsed == nil {
		opened := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(opened) }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.Stream == nil || c.Chunks == nil || c.Local == nil:
		return errors.New("cannot open journal: it needs a stream, chunks and a local store")
	case c.Lease < 0 || c.Lease > maxLease:
		return fmt.Errorf("cannot open journal with a lease of %s: want at most %s", c.Lease, maxLease)
	case c.InFlight < 1 || c.InFlight > maxInFlight:
		return fmt.Errorf("cannot open journal with %d blocks in flight: want 1 to %d", c.InFlight, maxInFlight)
	}
	return nil
}
