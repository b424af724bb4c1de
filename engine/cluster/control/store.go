package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
)

// Store is the journal of a partition, which the nodes of a cluster share. The disk of the node has
// copies of its snapshots.
type Store struct {
	*replicated.Store
	lease *Lease
	log   *natslog.Log
	disk  *embedded.Store
	watch *copyWatch
}

// CopiesDir is the directory in store.dir that has copies of the snapshots of partition 0.
const CopiesDir = "copies"

// ErrInterrupted is returned where a lease ends while its journal is opened or followed.
var ErrInterrupted = errors.New("recovery was interrupted")

// DirOf returns the directory in store.dir that a partition has of a kind.
func (l *Lease) DirOf(kind string) string {
	if l == nil || l.partition == 0 {
		return kind
	}
	return fmt.Sprintf("%s_%d", kind, l.partition)
}

// OpenStore opens the journal of the partition, with the copies of its snapshots in the directory
// of the node.
func (l *Lease) OpenStore(ec embedded.Config) (*Store, error) {
	ctx, cancel := l.joining()
	defer cancel()
	s, err := l.openShared(ctx, ec)
	if err == nil && ec.AcceptLoss {
		// Records are given up without following the log: where there is an owner, it has written
		// by the end of its lease, and the first append fails.
		connection.Pause(l.ended, l.node.term)
		err = l.ended.Err()
	}
	switch {
	case err == nil:
		l.shared.Store(s)
		if l.node.Several() { // nodes join at about one time, and take over in the order of their ranks
			l.view.Heard(owner.Now(), 0, 0)
		}
		return s, nil
	case s != nil:
		err = errors.Join(err, s.Close())
	}
	if l.ended.Err() != nil {
		err = ErrInterrupted
	}
	return nil, err
}

// joining returns a context that ends when the streams have to have answered: with the lease, where
// there was a replica before.
func (l *Lease) joining() (context.Context, context.CancelFunc) {
	if l.again {
		return context.WithCancel(l.ended)
	}
	return context.WithDeadline(l.ended, l.began.Add(l.node.cfg.JoinTimeout))
}

// Await calls read, which reads the streams, until they answer it. A server alone has none.
func (l *Lease) Await(read func() error) error {
	if l == nil {
		return read()
	}
	ctx, cancel := l.joining()
	defer cancel()
	return attempts(ctx, func(context.Context) error { return read() })
}

func (l *Lease) openShared(ctx context.Context, ec embedded.Config) (*Store, error) {
	n := l.node
	if err := n.member.AwaitQuorum(ctx); err != nil {
		return nil, err
	}
	log, err := n.openLog(ctx, 0) // which has the number of partitions before another one is made
	if err == nil && l.partition > 0 {
		log, err = n.openLog(ctx, l.partition)
	}
	if err != nil {
		return nil, err
	}
	if embedded.IsStore(ec.Dir) {
		return nil, errors.New("it has the journal of a single server, which the cluster does not have: move it away, or set cluster.mode=off")
	}
	ec.Dir = filepath.Join(ec.Dir, l.DirOf(CopiesDir))
	disk, err := openCopies(ec)
	if err != nil {
		return nil, err
	}
	s := &Store{lease: l, log: log, disk: disk, watch: newCopyWatch(l, log)}
	err = attempts(ctx, func(ctx context.Context) (err error) {
		s.Store, err = replicated.Open(ctx, replicated.Config{
			Stream: log, Chunks: log, Local: disk, Lease: askWithin(n.term), Elsewhere: s.watch.elsewhere,
			Elapsed: func() time.Duration { return time.Duration(owner.Now()) }, Logger: ec.Logger,
		})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	s.watch.start(s.Store)
	return s, nil
}

// openCopies opens the copies of snapshots. Damaged ones are moved away: the others have what they
// are copies of.
func openCopies(ec embedded.Config) (*embedded.Store, error) {
	if err := os.MkdirAll(ec.Dir, 0o700); err != nil {
		return nil, err
	}
	disk, err := embedded.Open(ec)
	if !errors.As(err, new(*journal.DamageError)) {
		return disk, err
	}
	away := ec.Dir + ".damaged"
	ec.Logger.Error("the copies of snapshots on this node are damaged, starting with an empty directory",
		"moved", away, "err", err)
	err = errors.Join(os.RemoveAll(away), os.Rename(ec.Dir, away), os.MkdirAll(ec.Dir, 0o700))
	if err != nil {
		return nil, err
	}
	return embedded.Open(ec)
}

// openAttempt bounds one attempt to open the streams: nodes that start together elect leaders, and
// a request that reaches none of them is never answered, or refused. openPause is between two.
const (
	openAttempt = 2 * time.Second
	openPause   = 100 * time.Millisecond
)

// attempts calls open until it is answered, or ctx ends.
func attempts(ctx context.Context, open func(ctx context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		err := open(attempt)
		late := attempt.Err() != nil || natslog.Unanswered(err)
		cancel()
		if err == nil || !late || !connection.Pause(ctx, openPause) {
			return err
		}
	}
}

// streamName is that of the stream of a partition.
func (n *Node) streamName(partition int) string {
	return fmt.Sprintf("%s_%d", n.cfg.Name, partition)
}

// openLog opens the streams of a partition, or makes them.
func (n *Node) openLog(ctx context.Context, partition int) (log *natslog.Log, err error) {
	var local natslog.Local
	if n.cfg.Embedded != nil {
		local = n.member
	}
	err = attempts(ctx, func(ctx context.Context) (err error) {
		log, err = natslog.Open(ctx, natslog.Config{
			Conn: n.member.Conn(), Name: n.streamName(partition), Replicas: n.cfg.Replicas,
			AnswerWithin: answerWithin(n.term), Partitions: n.cfg.Partitions, Local: local,
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
func (s *Store) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	l := s.lease
	ctx, stop := context.WithCancel(l.ended)
	var copying sync.WaitGroup
	copying.Go(func() { s.copySnapshots(ctx) })
	defer copying.Wait() // an owner writes there
	defer stop()
	l.view.Replay(true)
	heard := func(fence uint64, sent time.Duration, end bool) {
		if l.view.Heard(owner.Now(), fence, int64(sent)); end {
			l.view.Replay(false)
		}
	}
	err := s.Tail(l.ended, from, l.turn, func() bool { return l.due() && l.able() }, heard, f)
	if err != nil && l.ended.Err() != nil {
		return ErrInterrupted
	}
	if err == nil {
		l.view.Replay(false)
	}
	return err
}

// copyEvery is how often a standby looks for a snapshot that it has no copy of.
const copyEvery = time.Minute

// copySnapshots keeps copies of the snapshots on the disk of a standby, so that its next start need
// not ask for them.
func (s *Store) copySnapshots(ctx context.Context) {
	tick := time.NewTicker(copyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.CopySnapshot(ctx); err != nil && ctx.Err() == nil {
			s.lease.node.log.Warn("cannot copy the newest snapshot to this node", "partition", s.lease.partition, "err", err)
		}
	}
}

// Close implements journal.Store.
func (s *Store) Close() error {
	s.watch.stop()
	defer s.log.Close()
	return s.Store.Close()
}

// Full reports whether the disk of the node has no space.
func (s *Store) Full() bool { return s.disk.Full() }

// Broken reports whether the disk of the node has failed.
func (s *Store) Broken() bool { return s.disk.Broken() }

// Stats describes the disk of the node.
func (s *Store) Stats() embedded.Stats { return s.disk.Stats() }

// Checkpoint is refused.
func (s *Store) Checkpoint(string, func(string) error) error {
	return errors.New("cannot copy the journal of a cluster from one node: each node has a copy of it")
}
