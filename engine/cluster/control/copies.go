package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/engine/obs"
)

const (
	// verifyEvery is how often a node verifies some of its copy of a partition, and publishes what
	// it has.
	verifyEvery = time.Minute
	// verifyBytes is how much of it at a time, and verifyPause what is between two parts where
	// all of it is verified at once: after a start, and when a copy is in doubt.
	verifyBytes = 64 << 20
	verifyPause = 20 * time.Millisecond
	// verifyRetry is when a node looks again for a copy that it could not verify.
	verifyRetry = 5 * time.Second
	// answersWithin is how long the other nodes have to publish what they have when they are
	// asked.
	answersWithin = 3 * time.Second
	// maxReport bounds a report, in bytes.
	maxReport = 4 << 10
)

// copyReport is what a node publishes of its copy of a partition.
type copyReport struct {
	Node      string `json:"node"`
	Partition int    `json:"partition,omitempty"`
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
func decodeReport(b []byte) (r copyReport, err error) {
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
	copyReport
	at       time.Time
	compared bool // with the copy of this node
	differs  bool
}

// copyWatch verifies the copy of a partition that this node keeps, and compares it with those of
// the others. It has none where servers of an operator keep the journal. A lease has one, and that
// of the next lease takes its place.
type copyWatch struct {
	node    *Node
	lease   *Lease
	log     *natslog.Log
	ctx     context.Context // ends with the lease, or as its journal is closed
	stop    context.CancelFunc
	audit   *replicated.Audit // nil: this process keeps no copy
	ask     chan struct{}     // another node, or an operator, asks for a report
	refused string            // why this node does not copy the journal again; of the goroutine that verifies

	mu      sync.Mutex
	own     copyReport
	at      time.Time // of own
	damage  error     // of the copy of this node
	doubt   bool      // all of it is to be verified
	suspect string    // what is wrong with the node that leads the stream
	heard   map[string]*heardReport
	tries   int // to have another node lead
	tried   time.Time
}

func newCopyWatch(l *Lease, log *natslog.Log) *copyWatch {
	w := &copyWatch{node: l.node, lease: l, log: log, ask: make(chan struct{}, 1), heard: make(map[string]*heardReport)}
	w.ctx, w.stop = context.WithCancel(l.ended)
	return w
}

// copiesSubject is where nodes publish their reports: beside the log of the first partition.
func (n *Node) copiesSubject() string { return n.cfg.Name + "_0.copies" }

// hearCopies takes a report of another node, once the partition is followed here.
func (n *Node) hearCopies(b []byte) {
	r, err := decodeReport(b)
	if err != nil || r.Node == n.cfg.ID || !slices.Contains(n.ids, r.Node) || r.Partition < 0 ||
		r.Partition >= len(n.watches) {
		return
	}
	if w := n.watches[r.Partition].Load(); w != nil && w.audit != nil {
		w.hear(r)
	}
}

// start begins to watch.
func (w *copyWatch) start(s *replicated.Store) {
	if r := w.log.Replica(); r != nil {
		w.audit = s.NewAudit(r, 0, journal.Always) // the log of each partition is partition 0 of its stream
	}
	w.node.watches[w.lease.partition].Store(w)
	w.node.serving.Go(func() { w.run(w.ctx) })
}

func (w *copyWatch) run(ctx context.Context) {
	for all := true; ; {
		w.mu.Lock()
		all, w.doubt = all || w.doubt, false
		w.mu.Unlock()
		whole, err := w.round(ctx, all)
		pause := verifyEvery
		switch {
		case err != nil: // it is not there now: the server starts or ends, or another node has it
			w.node.log.Debug(
				"the copy of the journal on this node cannot be verified now",
				"partition",
				w.lease.partition,
				"err",
				err,
			)
			pause = verifyRetry
		case w.isDamaged():
			pause = verifyRetry
		case whole:
			all = false
		case all:
			pause = verifyPause
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
func (w *copyWatch) round(ctx context.Context, all bool) (whole bool, err error) {
	if w.audit == nil {
		w.checkLeader(ctx)
		return true, nil
	}
	whole, err = w.audit.Round(verifyBytes)
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
	w.own = copyReport{Seq: tip.Seq, Index: tip.Index, Hash: tip.Hash, Whole: whole || !all}
	w.at = time.Now()
	for _, h := range w.heard {
		w.compare(h)
	}
	w.mu.Unlock()
	w.publish(false, false)
	return whole, nil
}

// publish shows the others what this node has.
func (w *copyWatch) publish(ask, doubt bool) {
	w.mu.Lock()
	r := w.own
	w.mu.Unlock()
	r.Node, r.Partition, r.Ask, r.Doubt = w.node.cfg.ID, w.lease.partition, ask, doubt
	b, err := json.Marshal(r)
	if err == nil {
		err = w.node.member.Send(w.node.copiesSubject(), b)
	}
	if err != nil && w.ctx.Err() == nil {
		w.node.log.Warn("cannot publish what this node has of the journal", "err", err)
	}
}

// hear takes a report of another node.
func (w *copyWatch) hear(r copyReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubt = w.doubt || r.Doubt
	if r.Ask {
		w.wake()
	}
	h := &heardReport{copyReport: r, at: time.Now()}
	w.heard[r.Node] = h
	w.compare(h)
}

// compare compares a report with the copy of this node, once that has what it names. The caller
// holds mu.
func (w *copyWatch) compare(h *heardReport) {
	if h.compared || h.Seq == 0 || h.Damage != "" || !w.audit.Has(h.Seq) {
		return
	}
	own, err := w.audit.At(h.Seq)
	if err != nil {
		return
	}
	h.compared, h.differs = true, own.Index != h.Index || own.Hash != h.Hash
	if h.differs {
		w.node.log.Error(
			"another node has another journal than this one",
			"other",
			h.Node,
			"partition",
			h.Partition,
			"message",
			h.Seq,
			slog.Uint64("index", h.Index),
			slog.Uint64("own_index", own.Index),
		)
	}
}

// wake has this node verify a part of its copy now.
func (w *copyWatch) wake() {
	select {
	case w.ask <- struct{}{}:
	default: // it is about to
	}
}

// checkCopies has all nodes verify a part of their copies now, and waits for what they have.
func (n *Node) checkCopies(ctx context.Context) {
	began := time.Now()
	watches := n.copyWatches()
	for _, w := range watches {
		w.publish(true, false)
		w.wake()
	}
	await(ctx, func() bool {
		return !slices.ContainsFunc(watches, func(w *copyWatch) bool { return !w.checked(began) })
	})
}

// copyWatches are those of all partitions of which this process may have a copy.
func (n *Node) copyWatches() (all []*copyWatch) {
	for i := range n.watches {
		if w := n.watches[i].Load(); w != nil && w.audit != nil {
			all = append(all, w)
		}
	}
	return all
}

// checked reports whether all nodes have reported since.
func (w *copyWatch) checked(since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.heard {
		if h.at.Before(since) || !h.compared && h.Damage == "" {
			return false
		}
	}
	return w.at.After(since) && len(w.heard) >= len(w.node.ids)-1
}

// await waits until is returns true, a while at most.
func await(ctx context.Context, is func() bool) {
	for end := time.Now().Add(answersWithin); !is() && time.Now().Before(end) && connection.Pause(ctx, verifyPause); {
	}
}

// isDamaged reports whether the copy of this node is damaged.
func (w *copyWatch) isDamaged() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.damage != nil
}

// Damaged reports whether a copy of this node is.
func (n *Node) Damaged() bool {
	return slices.ContainsFunc(n.copyWatches(), (*copyWatch).isDamaged)
}

// differing counts the nodes that have another journal than this one.
func (w *copyWatch) differing() (n int) {
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

// copies returns what is known of the copies of the partition, in the order of the nodes, and what
// is wrong with them.
func (w *copyWatch) copies() (all []obs.ClusterCopy, problems []string) {
	if w == nil {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := ""
	if w.node.Several() {
		of = fmt.Sprintf(" (partition %d)", w.lease.partition)
	}
	now := time.Now()
	if w.damage != nil {
		problems = append(problems, fmt.Sprintf("the copy of the journal on this node is damaged%s: %v", of, w.damage))
	}
	if w.damage != nil || !w.at.IsZero() {
		all = append(all, w.own.show(w.node.cfg.ID, now.Sub(w.at)))
	}
	if w.suspect != "" {
		problems = append(problems, w.suspect+of)
	}
	for _, node := range slices.Sorted(maps.Keys(w.heard)) {
		h := w.heard[node]
		shown := h.show(node, now.Sub(h.at))
		shown.Compared, shown.Differs = h.compared, h.differs
		all = append(all, shown)
		if h.differs {
			problems = append(problems, fmt.Sprintf("node %s has another journal than this one at message %d%s", node, h.Seq, of))
		}
		if h.Damage != "" {
			problems = append(problems, fmt.Sprintf("the copy of the journal on node %s is damaged%s", node, of))
		}
	}
	slices.SortFunc(all, func(a, b obs.ClusterCopy) int { return cmp.Compare(a.Node, b.Node) })
	return all, problems
}

func (r *copyReport) show(node string, age time.Duration) obs.ClusterCopy {
	return obs.ClusterCopy{Node: node, Index: r.Index, Hash: fmt.Sprintf("%016x", r.Hash), AgeSeconds: age.Seconds(), Damage: r.Damage}
}
