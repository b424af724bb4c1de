package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/handlers/ipc"
)

// term is that of leases.
const term = time.Second

// turnChecks is how often in a term a standby looks whether it may take over.
const turnChecks = 20

// life is a process over a partition, from its start to its end: a standby first, then perhaps the
// owner.
type life struct {
	n    *node
	seat *seat
	part *partition
	name string
	born int64
	ctx  context.Context // ends with the process
	end  context.CancelFunc
	net  *network
	view *owner.View
	svc  *ipc.Service

	store   *replicated.Store // once open
	log     *journal.Log      // once open
	tasks   sync.WaitGroup    // its goroutines, but for the one that serves
	beating atomic.Bool       // the first beat of this owner is stored
	leaving atomic.Bool       // the journal is given to another node: no more beats
	turning atomic.Bool       // the loop is in a turn, and has not been stopped there
	losing  sync.Once

	beats, turns, stalls *dice // of the goroutines that have these names

	inbox    chan func()
	loopDice *dice
	serving  bool // of the loop, as what follows
	giving   bool // the journal is to be another node's: no more requests are taken
	given    bool // the loop has ended: nothing is answered any more
	conns    map[connID]*conn
	noted    journal.Index
	calls    int
}

// inboxRoom is how much may wait for a loop.
const inboxRoom = 256

// newLife makes the next process of a node.
func newLife(s *seat, number int) *life {
	n, part := s.n, s.part
	l := &life{n: n, seat: s, part: part, name: part.name(n.id, number), born: n.clock.elapsed(), inbox: make(chan func(), inboxRoom), conns: make(map[connID]*conn)}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.beats, l.turns, l.stalls, l.loopDice = l.dice("beats"), l.dice("turns"), l.dice("stalls"), l.dice("loop")
	l.net = &network{Client: part.log.Client(l.dice("client").number(), fine), l: l, dice: l.dice("network"), begins: l.dice("begins"), times: l.dice("times")}
	l.net.SetTimes(l.net.takes)
	l.view = owner.NewView(n.clock.elapsed())
	cfg := runtime.Config{Partition: part.number, Partitions: len(n.w.parts), Journaled: true, Now: l.now}
	cfg.SmallPages, cfg.DequeueLease = true, -1
	l.svc = ipc.NewService(ipc.Config{}, runtime.New(cfg))
	return l
}

func (l *life) dice(use ...any) *dice { return l.n.w.newDice(l.name, use) }

// now reads the clocks as a process does: from its start, behind where the journal ended.
func (l *life) now() connection.Instant {
	i := connection.Instant{Mono: 1 + l.n.clock.elapsed() - l.born, Wall: l.n.clock.wall().UnixMilli()}
	if l.svc != nil {
		i.Mono += l.svc.Runtime().Store.Base()
	}
	return i
}

func (l *life) elapsed() time.Duration { return time.Duration(l.n.clock.elapsed()) }

// sleep reports whether the process is there afterwards.
func (l *life) sleep(t time.Duration, d *dice) bool {
	select {
	case <-time.After(d.between(t, t+time.Millisecond)):
	case <-l.ctx.Done():
		return false
	}
	l.n.awake(l.ctx)
	return l.ctx.Err() == nil
}

// serve is the life. It returns when the process has ended.
func (l *life) serve() {
	l.tasks.Go(l.loop)
	err := l.recover()
	var damage *journal.DamageError
	switch {
	case err == nil:
		l.own()
	case errors.As(err, &damage) && l.ctx.Err() == nil:
		l.n.w.fail("%s finds the log damaged: %v", l.name, err)
	}
	if err != nil {
		l.n.w.event("%s is no owner", l.name)
		l.seat.kill(false)
	}
	<-l.ctx.Done()
}

// recover opens the journal and follows it until this process is its owner.
func (l *life) recover() error {
	if err := l.open(); err != nil {
		return err
	}
	log, err := journal.Open(shared{l.store, l}, journal.Config{
		OnDurable: l.svc.Runtime().Durable, OnFailure: l.lose, Now: l.n.clock.wall, Elapsed: l.elapsed,
	})
	if err != nil {
		return err
	}
	l.log = log
	return l.svc.Runtime().Store.Recover(log, store.RecoverOptions{Beat: l.saw, Stale: l.stale})
}

// open opens the store once the stream answers.
func (l *life) open() error {
	local, err := l.seat.disk.Open()
	if err != nil {
		return err
	}
	for {
		l.store, err = replicated.Open(l.ctx, replicated.Config{
			Stream: l.net, Chunks: l.net, Local: local, Lease: term, InFlight: l.n.inFlight, Elapsed: l.elapsed,
		})
		if err == nil || errors.As(err, new(*journal.DamageError)) || !l.sleep(term/turnChecks, l.turns) {
			break
		}
	}
	if err != nil {
		return errors.Join(err, local.Close())
	}
	if l.n.w.several() { // nodes start at about one time, and take over in the order of their ranks
		l.view.Heard(l.n.clock.elapsed(), 0, 0)
	}
	return nil
}

// shared is the store that a log follows until it is this process's turn, as that of the program.
type shared struct {
	*replicated.Store
	l *life
}

// Follow implements journal.Shared.
func (s shared) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	l := s.l
	ctx, stop := context.WithCancel(l.ctx)
	var copying sync.WaitGroup
	copying.Go(func() { l.copySnapshots(ctx) })
	defer copying.Wait()
	defer stop()
	l.view.Replay(true)
	defer l.view.Replay(false)
	heard := func(fence uint64, sent time.Duration, end bool) {
		if l.view.Heard(l.n.clock.elapsed(), fence, int64(sent)); end {
			l.view.Replay(false)
		}
	}
	return s.Tail(l.ctx, from, l.turn, l.due, heard, f)
}

// DropSnapshot implements journal.Store. The change before it, once settled, has the next block
// awaited at that moment.
func (s shared) DropSnapshot(id uint64) error {
	s.l.net.space(s.l.net.begins)
	return s.Store.DropSnapshot(id)
}

// copySnapshots keeps copies of snapshots on the disk of a standby.
func (l *life) copySnapshots(ctx context.Context) {
	for d := l.dice("copies"); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.between(term/2, 3*term/2)):
		}
		l.n.awake(ctx)
		_ = l.store.CopySnapshot(ctx) // one that was purged meanwhile is no copy
	}
}

// turn returns a channel that is closed when this process is to take over, or to look at the log.
func (l *life) turn() <-chan struct{} {
	turn, look := make(chan struct{}), l.n.clock.elapsed()+int64(term/2)
	l.tasks.Go(func() {
		for l.sleep(term/turnChecks, l.turns) {
			if _, err := l.net.State(l.ctx); err == nil && (l.due() || l.silent(look)) { // one that is cut off cannot take over
				close(turn)
				return
			}
		}
	})
	return turn
}

// silent reports whether this process was shown nothing for half of a term, and not since a time.
func (l *life) silent(since int64) bool {
	now := l.n.clock.elapsed()
	return now > since && l.view.Silent(now) > term/2
}

// due reports whether nothing was heard of an owner for so long that this process may take over.
func (l *life) due() bool {
	return l.n.w.bug == eager || l.view.Due(l.n.clock.elapsed(), term, l.view.Rank(l.n.w.ids, l.n.id, l.part.number, len(l.n.w.parts)))
}

// saw takes what an owner has written.
func (l *life) saw(rec []byte) error {
	b, err := owner.Decode(rec)
	if err == nil {
		l.view.Saw(b)
	}
	return err
}

// stale reports whether another process may own the journal by now. Before it looks, the loop may
// have been stopped for a while, with what it has read.
func (l *life) stale() bool {
	if l.turning.Swap(false) && l.stalls.hits(3) {
		l.note()
		l.n.w.count(&l.n.w.stats.stalls)
		time.Sleep(l.stalls.upTo(2 * term))
	}
	if l.n.w.bug == noLease {
		return false
	}
	confirmed := int64(l.store.Confirmed())
	if l.n.w.bug == pooled {
		confirmed = max(confirmed, l.n.confirmed.Load())
	}
	stale := !l.beating.Load() || owner.Lapsed(l.n.clock.elapsed(), confirmed, term)
	if stale {
		l.n.w.count(&l.n.w.stats.stale)
	}
	return stale
}

// own begins the work of an owner.
func (l *life) own() {
	l.part.claimed(l)
	b := owner.Beat{Node: l.n.id, Addr: l.n.id, Term: term}
	rec, err := b.Encode()
	if err != nil {
		l.n.w.fail("%v", err)
		return
	}
	l.view.Saw(b)
	if l.n.w.bug == early {
		l.svc.Runtime().Durable(^journal.Index(0))
	}
	l.tasks.Go(func() {
		for {
			if i := l.svc.Runtime().Store.Beat(rec); !l.beating.Load() {
				l.beating.Store(l.log.Await(l.ctx, i) == nil)
			}
			if !l.sleep(term/owner.BeatShare, l.beats) || l.leaving.Load() {
				return
			}
			l.n.confirmed.Store(int64(l.store.Confirmed()))
		}
	})
	l.later(l.loopDice, loopTime, func() { l.serving = true })
}

// giveWithin is the longest that an owner which is to give its journal to another node takes for
// what it was asked.
const giveWithin = 2 * toolTime

// give has an owner take no more requests, and a little later give its journal to another node. The
// loop calls it.
func (l *life) give(to string) {
	if !l.serving || l.giving {
		return
	}
	l.n.w.event("%s is to give its journal to %s", l.name, to)
	l.giving = true
	l.later(l.dice("give"), giveWithin, func() {
		l.leaving.Store(true)
		l.given = l.n.w.bug != lingering
		l.tasks.Go(func() { l.release(to) })
	})
}

// release writes who is next, and ends. Nothing is answered any more.
func (l *life) release(to string) {
	b := owner.Beat{Node: l.n.id, Addr: l.n.id, Term: term, Released: true, To: to}
	rec, err := b.Encode()
	if err != nil {
		l.n.w.fail("%v", err)
		return
	}
	d := l.dice("release")
	time.Sleep(d.upTo(loopTime)) // not beside the turn of the loop
	if l.log.Await(l.ctx, l.svc.Runtime().Store.Beat(rec)) == nil {
		l.part.released(to)
	}
	if l.n.w.bug == lingering {
		l.sleep(term, d)
	}
	l.seat.kill(false)
}

// loseWithin is how long a process that has lost the journal may answer from its memory.
const loseWithin = 3 * term

// lose ends a process that does not own its journal any more, a little later.
func (l *life) lose(error) {
	l.losing.Do(func() {
		l.n.w.event("%s has lost the journal", l.name)
		time.AfterFunc(l.beats.upTo(loseWithin), func() {
			if l.seat.alive() == l {
				l.seat.kill(false)
			}
		})
	})
}

// bury waits for what a process has begun.
func (l *life) bury() {
	if l.store != nil {
		_ = l.store.Close()
	}
	if l.log != nil {
		_ = l.log.Close()
	}
	l.tasks.Wait()
	l.svc.Runtime().Close()
}
