package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/engine/link"
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
	ctx, cancel := context.WithTimeout(c.closed, c.cfg.JoinTimeout)
	defer cancel()
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
	s.Store, err = replicated.Open(ctx, replicated.Config{
		Stream: log, Chunks: log, Local: disk, Lease: c.term,
		Elapsed: func() time.Duration { return time.Duration(link.Mono()) }, Logger: c.log,
	})
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	c.shared.Store(s)
	return s, nil
}

// openAttempt bounds one attempt to open the streams: nodes that start together elect leaders, and
// a request that reaches none of them is never answered.
const openAttempt = 2 * time.Second

// openLog opens the streams, or makes them.
func (c *cluster) openLog(ctx context.Context) (log *natslog.Log, err error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		log, err = natslog.Open(attempt, natslog.Config{
			Conn: c.member.JetStream().Conn(), Name: c.cfg.Name + "_0", Replicas: c.cfg.Replicas, AnswerWithin: answerWithin(c.term),
		})
		cancel()
		if err == nil || ctx.Err() != nil || attempt.Err() == nil {
			return log, err
		}
	}
}

// outrun makes a loss of ownership of a claim that failed because another node was faster.
func outrun(err error) error {
	if errors.Is(err, replicated.ErrNotOwner) {
		return fmt.Errorf("%w: %w", ErrOwnershipLost, err)
	}
	return err
}

// answerWithin is how long the stream may take to answer, so that an answer that is late is asked
// for again within the lease.
func answerWithin(term time.Duration) time.Duration { return max(term/2, 100*time.Millisecond) }

// Follow implements journal.Shared.
func (s *sharedStore) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	c := s.cluster
	return s.Tail(c.closed, from, c.turn, func() { c.view.Heard(link.Mono()) }, f)
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
