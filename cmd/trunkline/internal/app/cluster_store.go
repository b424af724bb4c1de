package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
)

// sharedStore is the journal that the nodes of a cluster share. The disk of the node has copies of
// its snapshots.
type sharedStore struct {
	*replicated.Store
	cluster *cluster
	disk    *embedded.Store
}

var (
	_ diskStore         = (*sharedStore)(nil)
	_ journal.Shared    = watchedShared{}
	_ journal.Pipelined = watchedShared{}
)

// copiesDir is the directory of the copies of snapshots, in store.dir.
const copiesDir = "copies"

// openStore opens the journal of the cluster, with the copies of its snapshots in the directory of
// the node.
func (c *cluster) openStore(ec embedded.Config) (diskStore, error) {
	ctx, cancel := context.WithCancel(c.closed)
	if !c.again {
		ctx, cancel = context.WithTimeout(c.closed, c.cfg.JoinTimeout)
	}
	defer cancel()
	s, err := c.openShared(ctx, ec)
	if err == nil && ec.AcceptLoss {
		err = c.outlast()
	}
	switch {
	case err == nil:
		c.shared.Store(s)
		return s, nil
	case s != nil:
		err = errors.Join(err, s.Close())
	}
	if c.closed.Err() != nil {
		err = errInterrupted
	}
	return nil, err
}

// outlast waits for the term of a lease. Records are given up without following the log: where an
// owner is there, it has written meanwhile, and the first append fails.
func (c *cluster) outlast() error {
	select {
	case <-time.After(c.term):
		return nil
	case <-c.closed.Done():
		return c.closed.Err()
	}
}

func (c *cluster) openShared(ctx context.Context, ec embedded.Config) (*sharedStore, error) {
	if err := c.member.AwaitQuorum(ctx); err != nil {
		return nil, err
	}
	log, err := c.openLog(ctx)
	if err != nil {
		return nil, err
	}
	if embedded.IsStore(ec.Dir) {
		return nil, errors.New("it has the journal of a single server, which the cluster does not have: move it away, or set cluster.mode=off")
	}
	ec.Dir = filepath.Join(ec.Dir, copiesDir)
	if err = os.MkdirAll(ec.Dir, 0o700); err != nil {
		return nil, err
	}
	disk, err := embedded.Open(ec)
	if err != nil {
		return nil, err
	}
	s := &sharedStore{cluster: c, disk: disk}
	err = attempts(ctx, func(ctx context.Context) (err error) {
		s.Store, err = replicated.Open(ctx, replicated.Config{
			Stream: log, Chunks: log, Local: disk, Lease: askWithin(c.term),
			Elapsed: func() time.Duration { return time.Duration(owner.Now()) }, Logger: c.log,
		})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	return s, nil
}

// openAttempt bounds one attempt to open the streams: nodes that start together elect leaders, and
// a request that reaches none of them is never answered.
const openAttempt = 2 * time.Second

// attemptPause is left between two of them.
const attemptPause = 100 * time.Millisecond

// attempts calls open until it is answered, or ctx ends.
func attempts(ctx context.Context, open func(ctx context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		err := open(attempt)
		late := attempt.Err() != nil || natslog.Unanswered(err)
		cancel()
		if err == nil || ctx.Err() != nil || !late {
			return err
		}
		select {
		case <-time.After(attemptPause):
		case <-ctx.Done():
		}
	}
}

// openLog opens the streams, or makes them.
func (c *cluster) openLog(ctx context.Context) (log *natslog.Log, err error) {
	err = attempts(ctx, func(ctx context.Context) (err error) {
		log, err = natslog.Open(ctx, natslog.Config{
			Conn: c.member.Conn(), Name: c.cfg.Name + "_0", Replicas: c.cfg.Replicas, AnswerWithin: answerWithin(c.term),
		})
		return err
	})
	return log, err
}

// answerWithin is how long the stream may take to answer, so that an answer that is late is asked
// for again within the lease.
func answerWithin(term time.Duration) time.Duration { return max(term/2, 100*time.Millisecond) }

// askWithin is for how long an owner asks again for an answer of the stream. That is longer than
// its lease: while the servers elect a leader nothing is answered, no other node can take over, and
// an owner that started again would take its server away from them. What it reads it shows within
// its lease alone, and where another node has taken over the next answer is a refusal.
func askWithin(term time.Duration) time.Duration { return min(askTerms*term, maxAsking) }

const (
	askTerms  = 5
	maxAsking = time.Minute // as the stream remembers
)

// Follow implements journal.Shared.
func (s *sharedStore) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	c := s.cluster
	ctx, stop := context.WithCancel(c.closed)
	var copying sync.WaitGroup
	copying.Go(func() { s.copySnapshots(ctx) })
	defer copying.Wait() // an owner writes there
	defer stop()
	err := s.Tail(c.closed, from, c.turn, c.due, func() { c.view.Heard(owner.Now()) }, f)
	if err != nil && c.closed.Err() != nil {
		return errInterrupted
	}
	return err
}

// copyEvery is how often a standby looks for a snapshot that it has no copy of.
const copyEvery = time.Minute

// copySnapshots keeps copies of the snapshots on the disk of a standby, so that its next start need
// not ask for them.
func (s *sharedStore) copySnapshots(ctx context.Context) {
	tick := time.NewTicker(copyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.CopySnapshot(ctx); err != nil && ctx.Err() == nil {
			s.cluster.log.Warn("cannot copy the newest snapshot to this node", "err", err)
		}
	}
}

// Full implements diskStore.
func (s *sharedStore) Full() bool { return s.disk.Full() }

// Broken implements diskStore.
func (s *sharedStore) Broken() bool { return s.disk.Broken() }

// Stats implements diskStore.
func (s *sharedStore) Stats() embedded.Stats { return s.disk.Stats() }

// Checkpoint implements diskStore.
func (s *sharedStore) Checkpoint(string, func(string) error) error {
	return errors.New("cannot copy the journal of a cluster from one node: each node has a copy of it")
}

// watchedShared is what a journal.Log opens of it: the methods of watched, and those that it hides.
type watchedShared struct {
	*watched
	shared *sharedStore
}

// Follow implements journal.Shared.
func (w watchedShared) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return w.shared.Follow(from, func(first journal.Index, block []byte) error {
		if err := w.err(); err != nil {
			return err
		}
		w.read.Add(uint64(len(block)))
		return f(first, block)
	})
}

// InFlight implements journal.Pipelined.
func (w watchedShared) InFlight() int { return w.shared.InFlight() }

// BeginBlock implements journal.Pipelined.
func (w watchedShared) BeginBlock(first journal.Index, block []byte) error {
	return w.shared.BeginBlock(first, block)
}

// AwaitBlock implements journal.Pipelined.
func (w watchedShared) AwaitBlock() error { return w.shared.AwaitBlock() }
