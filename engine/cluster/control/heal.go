package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated/natslog"
)

const (
	// leaderTries is how often in verifyEvery a node has another one lead the stream, because the
	// leader has lost messages.
	leaderTries = 4
	// leaderWithin is how long a change of the leader may take.
	leaderWithin = 10 * time.Second
)

// errRenewed ends a process whose successor copies the journal again.
var errRenewed = errors.New("the copy of the journal on this node is damaged, restarting to rebuild it")

// damaged is called with what is wrong with the copy of this node, whenever that is found.
func (w *copyWatch) damaged(ctx context.Context, damage error) {
	w.mu.Lock()
	known := w.damage != nil
	w.damage, w.own, w.at = damage, copyReport{Damage: damage.Error()}, time.Now()
	w.mu.Unlock()
	if !known {
		w.node.log.Error(
			"the copy of the journal on this node is damaged",
			"partition",
			w.lease.partition,
			"err",
			damage,
		)
	}
	asked := time.Now()
	for _, of := range w.node.copyWatches() { // the node gives up its copies of all partitions
		of.publish(true, !known)
	}
	if k, err := w.log.Keepers(ctx); err == nil && k[0].Server == w.node.cfg.ID {
		w.handOver(ctx, k)
	}
	err := w.renew(ctx, asked)
	if err == nil || ctx.Err() != nil || err.Error() == w.refused {
		return
	}
	w.refused = err.Error()
	w.node.log.Error(
		"this node does not rebuild its replica by itself: see 'A damaged replica' in docs/cluster.md",
		"err",
		err,
	)
}

// renew has this node begin again without its copies, if each other node has all of each partition.
// One that is a message behind the leader at one moment is not at another.
func (w *copyWatch) renew(ctx context.Context, asked time.Time) (err error) {
	watches := w.node.copyWatches()
	if len(watches) < w.node.cfg.Partitions {
		return errors.New("this node does not follow all partitions yet")
	}
	current := make([]map[string]bool, len(watches))
	await(ctx, func() bool {
		for i, of := range watches {
			if current[i] == nil {
				current[i] = make(map[string]bool)
			}
			if err = of.areWhole(ctx, current[i], asked); err != nil {
				return false
			}
		}
		return true
	})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = w.node.member.Renew(ctx)
	}
	if err == nil {
		w.node.lose(errRenewed)
	}
	return err
}

// areWhole returns why another node may lack what this one has of the partition. current has the
// nodes that had all of it at one moment.
func (w *copyWatch) areWhole(ctx context.Context, current map[string]bool, asked time.Time) error {
	keepers, err := w.log.Keepers(ctx)
	if err != nil {
		return err
	}
	for i := range keepers {
		k := &keepers[i]
		k.Current = k.Current || current[k.Server]
		current[k.Server] = k.Current
	}
	if err = w.othersAreWhole(keepers, asked); err != nil && w.node.Several() {
		err = fmt.Errorf("partition %d: %w", w.lease.partition, err)
	}
	return err
}

// othersAreWhole returns why another node may lack what this one has.
func (w *copyWatch) othersAreWhole(keepers []natslog.Keeper, asked time.Time) error {
	if len(keepers) < w.node.cfg.Replicas {
		return fmt.Errorf("%d nodes keep the journal, want %d", len(keepers), w.node.cfg.Replicas)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keepers {
		if k.Server == w.node.cfg.ID {
			continue
		}
		switch h := w.heard[k.Server]; {
		case !k.Current:
			return fmt.Errorf("node %s does not have all of the journal", k.Server)
		case h == nil || h.at.Before(asked):
			return fmt.Errorf("node %s has not reported what it has", k.Server)
		case h.Damage != "":
			return fmt.Errorf("the copy of node %s is damaged too: %s", k.Server, h.Damage)
		case !h.Whole:
			return fmt.Errorf("node %s has not verified all of its copy", k.Server)
		}
	}
	return nil
}

// checkLeader looks for lost messages where servers of an operator keep the journal.
func (w *copyWatch) checkLeader(ctx context.Context) {
	st, err := w.log.State(ctx)
	if err != nil || !w.lease.owns.Load() {
		return
	}
	if st.Deleted == 0 {
		w.mu.Lock()
		w.suspect = ""
		w.mu.Unlock()
		return
	}
	w.elsewhere(ctx, &journal.DamageError{Where: "stream", Err: fmt.Errorf("%d messages are missing", st.Deleted)})
}

// elsewhere has another node lead the stream, as the leader has lost messages, and reports whether
// they may be there now.
func (w *copyWatch) elsewhere(ctx context.Context, lost error) bool {
	w.mu.Lock()
	if time.Since(w.tried) > verifyEvery {
		w.tries = 0
	}
	w.tries++
	tries := w.tries
	w.tried = time.Now()
	w.mu.Unlock()
	if tries > leaderTries {
		return false
	}
	keepers, err := w.log.Keepers(ctx)
	if err == nil {
		w.node.log.Error(
			"the server that leads the stream of the journal has lost messages",
			"server",
			keepers[0].Server,
			"err",
			lost,
		)
		w.mu.Lock()
		w.suspect = fmt.Sprintf("the copy of the journal on %s is damaged: it leads the stream, and has lost messages", keepers[0].Server)
		w.mu.Unlock()
		if w.node.ids != nil {
			w.publish(true, true)
		}
		return w.handOver(ctx, keepers)
	}
	return connection.Pause(ctx, openAttempt/4) // a leader is being elected
}

// handOver has a whole copy lead the stream, and returns false where there is none.
func (w *copyWatch) handOver(ctx context.Context, keepers []natslog.Keeper) bool {
	next := w.successor(keepers)
	if next == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, leaderWithin)
	defer cancel()
	for ctx.Err() == nil {
		err := w.log.Lead(ctx, next)
		if err != nil {
			w.node.log.Warn("the leader of the stream does not change", "err", err)
		}
		connection.Pause(ctx, answerWithin(w.node.term))
		if now, err := w.log.Keepers(ctx); err == nil && now[0].Server != keepers[0].Server {
			w.node.log.Info("another server leads the stream of the journal", "server", now[0].Server)
			return true
		}
	}
	return false
}

// successor returns the server that is to lead the stream in place of the first one: this one, if
// it may.
func (w *copyWatch) successor(keepers []natslog.Keeper) (next string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keepers[1:] {
		h := w.heard[k.Server]
		switch {
		case !k.Current || h != nil && h.Damage != "":
		case k.Server == w.node.cfg.ID && w.damage == nil:
			return k.Server
		case k.Server != w.node.cfg.ID && next == "":
			next = k.Server
		}
	}
	return next
}
