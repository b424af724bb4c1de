package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	// A lease is electionOf times cluster.election_timeout_ms: where two nodes ask for votes at one
	// moment, neither has them, and they vote again within the lease.
	electionOf = 4
	// beyond is what a takeover may take longer than a lease.
	beyond = 500 * time.Millisecond
	// callersPerNode is the load: clients with one request in flight each.
	callersPerNode = 8
	// retryAfter is how long a client waits before it connects again.
	retryAfter = 5 * time.Millisecond
	// settleFor is left to a cluster between its start and the next death.
	settleFor = time.Second
	// mostRounds bounds the rounds of a lease, in kinds: chance decides who leads the stream.
	mostRounds = 6
)

// kinds are the takeovers that are counted apart.
var kinds = []string{"the owner led the stream", "another node led the stream"}

// takeover measures how long nothing is answered when the owner dies, some rounds of each kind.
func takeover(r *part.Run, rounds int) error {
	t := goal.Grid{Title: "seconds from SIGKILL of the owner to an answer at another node", Head: []string{"lease s", "rounds", "median", "p90", "longest", "both nodes: median", "longest", "of rounds in which"}}
	for _, lease := range []time.Duration{time.Second, 2 * time.Second} {
		g := goal.Goal{What: fmt.Sprintf("takeover with a lease of %v, seconds, the longest of %d", lease, rounds), Must: (lease + beyond).Seconds()}
		took, err := takeovers(r, lease, rounds)
		if err != nil {
			return err
		}
		for i, kind := range kinds {
			var first, both []float64
			for _, at := range took[i] {
				first, both = append(first, at.first.Seconds()), append(both, at.both.Seconds())
			}
			t.Add(lease.Seconds(), len(first), goal.Median(first), goal.Quantile(first, 0.9), goal.Quantile(first, 1), goal.Median(both), goal.Quantile(both, 1), kind)
			g.Add(kind, goal.Quantile(first, 1))
		}
		r.Report.Goal(g)
		r.StopAll()
	}
	r.Report.Table(t)
	return nil
}

// errMoved ends a round without a death, as on a machine that is too busy for the lease.
var errMoved = errors.New("the owner has changed before it was killed")

// gap is how long it took until one node answered, and until both that were left did.
type gap struct{ first, both time.Duration }

// takeovers kills owners of a cluster until there are so many rounds of each kind.
func takeovers(r *part.Run, lease time.Duration, rounds int) (took [2][]gap, err error) {
	c, err := startNodes(r, lease, lease/electionOf)
	if err != nil {
		return took, err
	}
	if err := load.CreateRows(c.owner().server.Addr, 0, callersPerNode*len(c.all)); err != nil {
		return took, err
	}
	for n := 0; n < mostRounds*rounds && (len(took[0]) < rounds || len(took[1]) < rounds); n++ {
		if len(took[0]) < len(took[1]) {
			if err := c.unseat(); err != nil {
				return took, err
			}
		}
		kind, at, err := c.dies()
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return took, fmt.Errorf("round %d with a lease of %v: %w", n+1, lease, err)
		}
		if len(took[kind]) < rounds {
			took[kind] = append(took[kind], at)
		}
		fmt.Fprintf(os.Stderr, "lease %v: %.2f s, both nodes %.2f s, %s\n", lease, at.first.Seconds(),
			at.both.Seconds(), kinds[kind])
	}
	return took, nil
}

// unseat has another node lead the stream, where the owner does not: it may be the owner.
func (c *nodes) unseat() error {
	leader := c.leader.Load()
	if leader == c.owner() {
		return nil
	}
	if err := leader.server.Kill(); err != nil {
		return err
	}
	if err := await("another node leads the stream", func() bool { return c.leader.Load() != leader }); err != nil {
		return err
	}
	if err := c.start(leader); err != nil {
		return err
	}
	return c.ready()
}

// dies is one round: the owner is killed under load, and starts again.
func (c *nodes) dies() (kind int, took gap, err error) {
	w := &watch{answered: map[*node]time.Time{}}
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	defer func() {
		cancel()
		callers.Wait()
	}()
	if err := c.ready(); err != nil {
		return 0, gap{}, err
	}
	owner := c.owner()
	if owner == nil {
		return 0, gap{}, errMoved
	}
	if c.leader.Load() != owner {
		kind = 1
	}
	for i, n := range c.all {
		for j := range callersPerNode {
			callers.Go(func() { w.calls(ctx, n, i*callersPerNode+j) })
		}
	}
	if err := await("clients of all nodes have answers", func() bool { return w.nodes() == len(c.all) }); err != nil {
		return 0, gap{}, err
	}
	time.Sleep(settleFor)
	if owner.metric(ownerMetric) != 1 {
		return 0, gap{}, errMoved
	}
	began := time.Now()
	if err := owner.server.Kill(); err != nil {
		return 0, gap{}, err
	}
	w.from(time.Now())
	if err := await("clients of both nodes have answers", func() bool { return w.nodes() == len(c.all)-1 }); err != nil {
		return 0, gap{}, err
	}
	first, last := w.span()
	if err := c.start(owner); err != nil {
		return 0, gap{}, err
	}
	return kind, gap{first.Sub(began), last.Sub(began)}, c.ready()
}

// watch is when clients of the nodes were answered first what they sent after some time.
type watch struct {
	mu       sync.Mutex
	after    time.Time
	answered map[*node]time.Time
}

// from begins again with answers to what is sent from now on.
func (w *watch) from(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = now
	clear(w.answered)
}

func (w *watch) saw(n *node, sent, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent.After(w.after) && w.answered[n].IsZero() {
		w.answered[n] = now
	}
}

// nodes counts the nodes whose clients were answered.
func (w *watch) nodes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.answered)
}

// span returns the first and the last of their times.
func (w *watch) span() (first, last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.SortedFunc(maps.Values(w.answered), time.Time.Compare)
	return at[0], at[len(at)-1]
}

// calls is a client of a node, which changes a process again and again.
func (w *watch) calls(ctx context.Context, n *node, row int) {
	addr, request := n.server.Addr, load.RowRequest(recording, row)
	for ctx.Err() == nil {
		if c, err := load.Dial(addr); err == nil {
			end := context.AfterFunc(ctx, func() { _ = c.Close() })
			for err == nil {
				var answer byte
				sent := time.Now()
				if answer, _, err = c.Exchange(request); err == nil && answer == load.Response {
					w.saw(n, sent, time.Now())
				}
			}
			end()
			_ = c.Close()
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
}
