package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/handlers/ops"
)

const (
	// replicaEvery is how often a node verifies some of its copy of the journal, and publishes what
	// it has.
	replicaEvery = time.Minute
	// replicaBytes is how much of it at a time, and replicaPause what is between two parts where
	// all of it is verified at once: after a start, and when a copy is in doubt.
	replicaBytes = 64 << 20
	replicaPause = 20 * time.Millisecond
	// replicaRetry is when a node looks again for a copy that it could not verify.
	replicaRetry = 5 * time.Second
	// replicaAnswers is how long the other nodes have to publish what they have when they are
	// asked.
	replicaAnswers = 3 * time.Second
	// maxReport bounds a report, in bytes.
	maxReport = 4 << 10
)

// reasonReplicaDamaged is shown by /readyz on a node whose copy of the journal is damaged.
const reasonReplicaDamaged = "replica_damaged"

// replicaReport is what a node publishes of its copy of the journal.
type replicaReport struct {
	Node string `json:"node"`
	// Seq is the place of a block in the stream, Index its last record, and Hash stands for the
	// journal up to there.
	Seq    uint64 `json:"seq"`
	Index  uint64 `json:"index"`
	Hash   uint64 `json:"hash"`
	Damage string `json:"damage,omitempty"`
	// Whole: all of the copy was verified since the start of the node, or since it was in doubt.
	Whole bool `json:"whole,omitempty"`
	// Ask: the others report too. Doubt: they verify all of their copies first.
	Ask   bool `json:"ask,omitempty"`
	Doubt bool `json:"doubt,omitempty"`
}

// decodeReport reads the report of another node.
func decodeReport(b []byte) (r replicaReport, err error) {
	if len(b) > maxReport {
		return r, fmt.Errorf("cannot read report of %d bytes", len(b))
	}
	if err = json.Unmarshal(b, &r); err == nil && r.Node == "" {
		err = errors.New("cannot read report: it names no node")
	}
	return r, err
}

// heardReport is the last report of another node.
type heardReport struct {
	replicaReport
	at       time.Time
	compared bool // with the copy of this node
	differs  bool
}

// replicaWatch verifies the copy of the journal that this node keeps, and compares it with those of
// the others. It has none where servers of an operator keep the journal.
type replicaWatch struct {
	c       *cluster
	log     *natslog.Log
	audit   *replicated.Audit // nil: this process keeps no copy
	ask     chan struct{}     // another node, or an operator, asks for a report
	refused string            // why this node does not copy the journal anew; of the goroutine that verifies

	mu      sync.Mutex
	own     replicaReport
	at      time.Time // of own
	damage  error     // of the copy of this node
	doubt   bool      // all of it is to be verified
	suspect string    // what is wrong with the node that leads the stream
	heard   map[string]*heardReport
	tries   int // to have another node lead
	tried   time.Time
}

func newReplicaWatch(c *cluster, log *natslog.Log) *replicaWatch {
	return &replicaWatch{c: c, log: log, ask: make(chan struct{}, 1), heard: make(map[string]*heardReport)}
}

// subject is where nodes publish their reports.
func (w *replicaWatch) subject() string { return "trunkline." + w.c.cfg.Name + ".replica" }

// start begins to watch, until the node leaves the cluster.
func (w *replicaWatch) start(s *replicated.Store) error {
	if r := w.log.Replica(); r != nil {
		w.audit = s.NewAudit(r, 0, journal.Always)
		if err := w.c.member.Hear(w.subject(), w.hear); err != nil {
			return err
		}
	}
	w.c.tasks.Go(func() { w.run(w.c.closed) })
	return nil
}

func (w *replicaWatch) run(ctx context.Context) {
	for all := true; ; {
		w.mu.Lock()
		all, w.doubt = all || w.doubt, false
		w.mu.Unlock()
		whole, err := w.round(ctx, all)
		pause := replicaEvery
		switch {
		case err != nil: // it is not there now: the server starts or ends, or another node has it
			w.c.log.Debug("the copy of the journal on this node cannot be verified now", "err", err)
			pause = replicaRetry
		case w.isDamaged():
			pause = replicaRetry
		case whole:
			all = false
		case all:
			pause = replicaPause
		}
		select {
		case <-ctx.Done():
			return
		case <-w.ask:
		case <-time.After(pause):
		}
	}
}

// round verifies a part of the copy, and publishes what is at its end. all is set while nothing is
// known of the rest. It returns true at the end of the copy, and where that is known to be damaged.
func (w *replicaWatch) round(ctx context.Context, all bool) (whole bool, err error) {
	if w.audit == nil {
		w.checkLeader(ctx)
		return true, nil
	}
	whole, err = w.audit.Round(replicaBytes)
	var tip replicated.Place
	if err == nil {
		tip, err = w.audit.Tip()
	}
	if errors.As(err, new(*journal.DamageError)) {
		w.damaged(ctx, err)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	w.damage = nil
	w.own = replicaReport{Seq: tip.Seq, Index: tip.Index, Hash: tip.Hash, Whole: whole || !all}
	w.at = time.Now()
	for _, h := range w.heard {
		w.compare(h)
	}
	w.mu.Unlock()
	w.publish(false, false)
	return whole, nil
}

// publish shows the others what this node has.
func (w *replicaWatch) publish(ask, doubt bool) {
	w.mu.Lock()
	r := w.own
	w.mu.Unlock()
	r.Node, r.Ask, r.Doubt = w.c.id, ask, doubt
	b, err := json.Marshal(r)
	if err == nil {
		err = w.c.member.Publish(w.subject(), b)
	}
	if err != nil && w.c.closed.Err() == nil {
		w.c.log.Warn("cannot publish what this node has of the journal", "err", err)
	}
}

// hear takes a report of another node.
func (w *replicaWatch) hear(b []byte) {
	r, err := decodeReport(b)
	if err != nil || r.Node == w.c.id || !slices.Contains(w.c.ids, r.Node) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubt = w.doubt || r.Doubt
	if r.Ask {
		w.wake()
	}
	h := &heardReport{replicaReport: r, at: time.Now()}
	w.heard[r.Node] = h
	w.compare(h)
}

// compare compares a report with the copy of this node, once that has what it names. The caller
// holds mu.
func (w *replicaWatch) compare(h *heardReport) {
	if h.compared || h.Seq == 0 || h.Damage != "" || !w.audit.Has(h.Seq) {
		return
	}
	own, err := w.audit.At(h.Seq)
	if err != nil {
		return
	}
	h.compared, h.differs = true, own.Index != h.Index || own.Hash != h.Hash
	if h.differs {
		w.c.log.Error("another node has another journal than this one", "other", h.Node, "message", h.Seq,
			slog.Uint64("index", h.Index), slog.Uint64("own_index", own.Index))
	}
}

// wake has this node verify a part of its copy now.
func (w *replicaWatch) wake() {
	select {
	case w.ask <- struct{}{}:
	default: // it is about to
	}
}

// check has all nodes verify a part of their copies now, and waits for what they have.
func (w *replicaWatch) check(ctx context.Context) {
	if w == nil || w.audit == nil {
		return
	}
	began := time.Now()
	w.publish(true, false)
	w.wake()
	w.await(ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, h := range w.heard {
			if h.at.Before(began) || !h.compared && h.Damage == "" {
				return false
			}
		}
		return w.at.After(began) && len(w.heard) >= len(w.c.ids)-1
	})
}

// await waits until is returns true, a while at most.
func (w *replicaWatch) await(ctx context.Context, is func() bool) {
	for end := time.Now().Add(replicaAnswers); !is() && time.Now().Before(end); {
		select {
		case <-time.After(replicaPause):
		case <-ctx.Done():
			return
		}
	}
}

// isDamaged reports whether the copy of this node is damaged.
func (w *replicaWatch) isDamaged() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.damage != nil
}

// differing counts the nodes that have another journal than this one.
func (w *replicaWatch) differing() (n int) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.heard {
		if h.differs {
			n++
		}
	}
	return n
}

// show adds what is known of the copies to what /cluster shows.
func (w *replicaWatch) show(v *ops.Cluster) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	problem := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); v.Problem == "" {
			v.Problem = text
		} else {
			v.Problem += "; " + text
		}
	}
	now := time.Now()
	if w.damage != nil {
		problem("the copy of the journal on this node is damaged: %v", w.damage)
		v.Replica = &ops.ClusterReplica{Damage: w.damage.Error()}
	} else if !w.at.IsZero() {
		v.Replica = w.own.show(now.Sub(w.at))
	}
	if w.suspect != "" {
		problem("%s", w.suspect)
	}
	for i := range v.Peers {
		p := &v.Peers[i]
		h := w.heard[p.Node]
		if h == nil {
			continue
		}
		p.Replica = h.show(now.Sub(h.at))
		p.Replica.Compared, p.Replica.Differs = h.compared, h.differs
		if h.differs {
			problem("node %s has another journal than this one at message %d", p.Node, h.Seq)
		}
		if h.Damage != "" {
			problem("the copy of the journal on node %s is damaged", p.Node)
		}
	}
}

func (r *replicaReport) show(age time.Duration) *ops.ClusterReplica {
	return &ops.ClusterReplica{Index: r.Index, Hash: fmt.Sprintf("%016x", r.Hash), AgeSeconds: age.Seconds(), Damage: r.Damage}
}
