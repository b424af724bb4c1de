package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

const (
	conns, actorsPerConn = 4, 16
	sharedProcesses      = 4
	readers, takers      = 4, 2
	maxFaults            = 20
	// roundTime bounds the load of a round and the checks after it, each: a server that answers no
	// more is a fault.
	roundTime = 60 * time.Second
	// leastLoad and mostLoad are how long a round loads the server.
	leastLoad, mostLoad = 50 * time.Millisecond, 500 * time.Millisecond
)

// leg is how the server is set up for some rounds.
type leg struct {
	mode string
	// frequent has snapshots taken after the smallest growth of the journal that can be set.
	frequent bool
}

func (l leg) String() string {
	if l.frequent {
		return l.mode + ", frequent snapshots"
	}
	return l.mode
}

// game plays rounds on one directory after the other.
type game struct {
	o      *options
	leg    leg
	number int // of the game, in the names of its directories
	binary string
	temp   string
	rng    *rand.Rand
	server *load.Server
	addr   string // of the first server: the later ones listen there too
	dir    string
	born   int // directories so far

	actors []*actor
	shared []*shared
	stamp  atomic.Int64 // orders requests and replies of all clients
	began  time.Time
	hist   *histories
	count  tally

	mu         sync.Mutex // guards what follows
	faults     []string
	started    map[string]int64 // by takers: when the last such request was sent
	leased     map[string]bool  // handed out without being started
	wildStarts int              // such requests without a reply
	wildLeases int
	glimpses   []glimpse
	seen       map[string]bool // by events: created, or true if terminated
}

func newGame(o *options, l leg, number int, binary, temp string) *game {
	return &game{o: o, leg: l, number: number, binary: binary, temp: temp, began: time.Now(), rng: rand.New(rand.NewPCG(o.seed, uint64(number)))}
}

// pages is the folder of histories that no order explains.
func (g *game) pages() string {
	if g.o.out != "" {
		return g.o.out
	}
	return g.temp
}

// ending is how a round ends.
type ending int

const (
	killed      ending = iota // under load
	killedTwice               // and once more while it recovers
	killedIdle
	stopped // SIGTERM under load
	stoppedIdle
	endingCount
)

var endingNames = [endingCount]string{killed: "a kill under load", killedTwice: "a kill under load and one more in the recovery", killedIdle: "a kill at rest",
	stopped: "a stop under load", stoppedIdle: "a stop at rest"}

func (e ending) idle() bool { return e == killedIdle || e == stoppedIdle }

// endings take turns; most rounds end in a kill under load.
var endings = []ending{killed, stoppedIdle, killedTwice, killed, killed, killedIdle, killed, killed, stopped, killed}

// play plays the rounds on one directory, or more if it grows too large, and returns what was
// wrong; it stops at the first round with a fault.
func (g *game) play(ctx context.Context, rounds int) ([]string, error) {
	defer g.leave()
	for i := range rounds {
		if g.server == nil || g.o.disk<<20 < load.DirectoryBytes(g.dir) {
			if err := g.birth(ctx); err != nil {
				return g.faults, err
			}
		}
		how := endings[i%len(endings)]
		if faults := g.played(i, how, g.round(ctx, how, i+1 == rounds)); len(faults) > 0 {
			return faults, nil
		}
	}
	return nil, nil
}

// played counts a round that ended in the given way, with an error or not, and returns what was
// wrong with it.
func (g *game) played(i int, how ending, err error) []string {
	if err != nil {
		g.fault("%v", err)
	}
	if len(g.faults) > 0 {
		return append(g.faults, fmt.Sprintf("that was round %d of %s, game %d, seed %d, ended by %s; the server's output:\n%s",
			i+1, g.leg, g.number, g.o.seed, endingNames[how], g.server.Output()))
	}
	g.count.add(map[string]count{"always": roundsAlways, "interval": roundsInterval, "memory": roundsMemory}[g.leg.mode], 1)
	if g.leg.frequent {
		g.count.add(roundsFrequent, 1)
	}
	return nil
}

// leave ends the server. What it kept goes, unless there was something wrong.
func (g *game) leave() {
	if g.server == nil {
		return
	}
	g.server.Stop()
	if len(g.faults) == 0 && !g.o.keep {
		os.RemoveAll(g.dir)
	}
}

// birth begins with an empty directory.
func (g *game) birth(ctx context.Context) error {
	if g.server != nil {
		g.server.Stop()
		if err := os.RemoveAll(g.dir); err != nil {
			return err
		}
	}
	g.born++
	g.dir = filepath.Join(g.temp, fmt.Sprintf("%s-%d-%d", g.leg.mode, g.number, g.born))
	if err := g.start(); err != nil {
		return err
	}
	return g.people(ctx)
}

// people begin with a server that holds nothing.
func (g *game) people(ctx context.Context) error {
	g.forget()
	g.actors, g.shared, g.glimpses, g.hist = nil, nil, make([]glimpse, conns*actorsPerConn), newHistories(g)
	for i := range conns * actorsPerConn {
		g.actors = append(g.actors, newActor(g, i))
	}
	c, err := ipcclient.Dial(ctx, g.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range sharedProcesses {
		s := &shared{pid: fmt.Sprintf("shared-%d", i)}
		if _, err := c.CreateProcess(ctx, ipcclient.CreateProcess{PID: s.pid, UserID: s.pid, Schedule: new(false)}); err != nil {
			return err
		}
		g.shared = append(g.shared, s)
	}
	return nil
}

// forget drops what concerns one round only.
func (g *game) forget() {
	g.started, g.leased, g.seen = make(map[string]int64), make(map[string]bool), make(map[string]bool)
	g.wildStarts, g.wildLeases = 0, 0
}

// round loads the server, ends it in the given way, starts it again and compares. The last one ends
// the histories.
func (g *game) round(ctx context.Context, how ending, last bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*roundTime)
	defer cancel()
	if err := g.load(ctx, how); err != nil {
		return fmt.Errorf("cannot load the server: %w", err)
	}
	var before picture
	if how.idle() {
		var err error
		if before, err = g.pictured(ctx); err != nil {
			return err
		}
		if err = g.end(how); err != nil {
			return err
		}
	}
	if err := g.start(); err != nil {
		g.fault("no restart: %v", err)
		return nil
	}
	g.count.add(restarts, 1)
	if how.idle() {
		after, err := g.pictured(ctx)
		if err != nil {
			return err
		}
		g.compare(before, after)
	}
	if err := g.check(ctx, last); err != nil {
		return fmt.Errorf("cannot check the server: %w", err)
	}
	if !g.server.Alive() {
		return errors.New("the server ended by itself")
	}
	return nil
}

// load lets every client loose for a random time. Unless the round ends at rest, the server is gone
// when it returns.
func (g *game) load(ctx context.Context, how ending) error {
	lines, hangUp, err := g.dial(ctx, conns+readers+takers+historianConns+1)
	defer hangUp()
	if err != nil {
		return err
	}
	sub, err := lines[len(lines)-1].Subscribe(ctx, ipcclient.Subscribe{EventTypes: []string{"process.created", "process.terminated"}})
	if err != nil {
		return err
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { g.listen(ctx, sub) })
	span := leastLoad + time.Duration(g.rng.Int64N(int64(mostLoad-leastLoad)))
	g.letLoose(ctx, lines, span, &wg, &stop)
	calm := func() {}
	if g.rng.IntN(2) == 0 {
		calm = g.occupyDisk()
	}
	time.Sleep(span)
	if how.idle() {
		stop.Store(true)
		sub.Close()
	} else {
		err = g.end(how)
	}
	calm()
	if err != nil {
		return err
	}
	wg.Wait()
	g.hist.stamp()
	g.count.add(endedBy+count(how), 1)
	return nil
}

// letLoose starts every client who works until the connection is lost or stop is set; that will be
// after span.
func (g *game) letLoose(ctx context.Context, lines []*ipcclient.Conn, span time.Duration, wg *sync.WaitGroup, stop *atomic.Bool) {
	some := func(n int) (own []*ipcclient.Conn) {
		own, lines = lines[:n], lines[n:]
		return own
	}
	random := func(kind uint64) *rand.Rand { return rand.New(rand.NewPCG(g.rng.Uint64(), kind)) }
	own := some(conns)
	for i, a := range g.actors {
		wg.Go(func() { a.run(ctx, own[i%conns], stop) })
	}
	for _, c := range some(readers) {
		rng := random(1)
		wg.Go(func() { g.watch(ctx, c, rng, stop) })
	}
	for i, c := range some(takers) {
		rng := random(2)
		wg.Go(func() { g.take(ctx, c, firstTaker+i, rng, stop) })
	}
	own = some(historianConns)
	for i := range historians {
		rng, c := random(3), own[i%historianConns]
		wg.Go(func() { g.hist.write(ctx, c, i, rng, span, stop) })
	}
}

// dial opens n connections; hangUp closes what was opened.
func (g *game) dial(ctx context.Context, n int) (lines []*ipcclient.Conn, hangUp func(), err error) {
	for range n {
		var c *ipcclient.Conn
		if c, err = ipcclient.Dial(ctx, g.addr); err != nil {
			break
		}
		lines = append(lines, c)
	}
	return lines, func() {
		for _, c := range lines {
			c.Close()
		}
	}, err
}

// evaluate sorts the error of a request: lost means that it may have taken effect or not, alive
// that the connection goes on.
func (g *game) evaluate(err error, what string) (lost, alive bool) {
	var refusal *ipcclient.Error
	var gone *ipcclient.ConnError
	switch {
	case errors.As(err, &gone) && !errors.Is(err, ipcclient.ErrProtocol):
		g.count.add(unanswered, 1)
		return true, false
	case errors.As(err, &refusal) && (refusal.Retryable || refusal.Code == wire.Cancelled):
		return false, true
	case errors.As(err, &refusal) && refusal.Code == wire.Unavailable:
		return false, false
	}
	g.fault("%s: %v", what, err)
	return true, false
}

func (g *game) fault(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.faults) < maxFaults {
		g.faults = append(g.faults, fmt.Sprintf(format, args...))
	}
}
