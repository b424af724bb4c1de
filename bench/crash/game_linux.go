package main

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
	"trunkline/handlers/ipc/client"
)

const (
	conns, actorsPerConn = 4, 16
	sharedProcesses      = 4
	readers, takers      = 4, 2
	maxFaults            = 20
	// roundTime bounds the load of a round and the checks after it, each: a server that answers no more is a fault.
	roundTime = 60 * time.Second
	// lifetime is how many rounds a directory is used; a replay goes over all of them.
	lifetime = 20
)

// game plays rounds on one directory after the other.
type game struct {
	o      options
	mode   string
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
	acked  atomic.Int64 // changes that were confirmed, reads aside

	mu         sync.Mutex // guards what follows
	faults     []string
	started    map[string]int64 // by takers: when the last such request was sent
	leased     map[string]bool  // handed out without being started
	wildStarts int              // such requests without a reply
	wildLeases int
	glimpses   []glimpse
	told       map[string]bool // by events: created, or true if terminated

	retried, unsure int // after restarts: requests without a reply, and those of them that were sent again unread
	restarts        int
}

func newGame(o options, mode, binary, temp string) *game {
	return &game{o: o, mode: mode, binary: binary, temp: temp, rng: rand.New(rand.NewPCG(o.seed, uint64(len(mode))))}
}

// ending is how a round ends.
type ending int

const (
	killed      ending = iota // under load
	killedTwice               // and once more while it recovers
	killedIdle
	stopped // SIGTERM under load
	stoppedIdle
)

var endingNames = [...]string{killed: "a kill under load", killedTwice: "a kill under load and one more in the recovery", killedIdle: "a kill at rest",
	stopped: "a stop under load", stoppedIdle: "a stop at rest"}

func (e ending) idle() bool { return e == killedIdle || e == stoppedIdle }

// endings take turns; most rounds end in a kill under load.
var endings = []ending{killed, stoppedIdle, killedTwice, killed, killed, killedIdle, killed, killed, stopped, killed}

// play plays the rounds and returns what was wrong; it stops at the first round with a fault.
func (g *game) play(ctx context.Context, rounds int, progress func(string)) ([]string, error) {
	defer func() {
		if g.server != nil {
			g.server.Stop()
		}
	}()
	for i := range rounds {
		if i%lifetime == 0 || g.o.disk < directorySize(g.dir) {
			if err := g.birth(ctx); err != nil {
				return g.faults, err
			}
		}
		how := endings[i%len(endings)]
		if err := g.round(ctx, how); err != nil {
			g.fault("%v", err)
		}
		if len(g.faults) > 0 {
			return append(g.faults, fmt.Sprintf("that was round %d of %s, seed %d, ended by %s; the server's output:\n%s",
				i+1, g.mode, g.o.seed, endingNames[how], g.server.Output())), nil
		}
		if (i+1)%lifetime == 0 || i+1 == rounds {
			progress(fmt.Sprintf("%-8s %4d rounds, %d restarts: %d changes confirmed, %d requests without a reply, %d of them sent again, %.0f MiB on disk",
				g.mode, i+1, g.restarts, g.acked.Load(), g.unsure, g.retried, float64(directorySize(g.dir))/(1<<20)))
		}
	}
	return g.faults, nil
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
	g.dir = filepath.Join(g.temp, fmt.Sprintf("%s-%d", g.mode, g.born))
	g.forget()
	g.actors, g.shared, g.glimpses = nil, nil, make([]glimpse, conns*actorsPerConn)
	for i := range conns * actorsPerConn {
		g.actors = append(g.actors, newActor(g, i))
	}
	if err := g.start(); err != nil {
		return err
	}
	c, err := client.Dial(ctx, g.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range sharedProcesses {
		s := &shared{pid: fmt.Sprintf("shared-%d", i)}
		if _, err := c.CreateProcess(ctx, client.CreateProcess{PID: s.pid, UserID: s.pid, Schedule: new(false)}); err != nil {
			return err
		}
		g.shared = append(g.shared, s)
	}
	return nil
}

// forget drops what concerns one round only.
func (g *game) forget() {
	g.started, g.leased, g.told = make(map[string]int64), make(map[string]bool), make(map[string]bool)
	g.wildStarts, g.wildLeases = 0, 0
}

// round loads the server, ends it in the given way, starts it again and compares.
func (g *game) round(ctx context.Context, how ending) error {
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
	g.restarts++
	if how.idle() {
		after, err := g.pictured(ctx)
		if err != nil {
			return err
		}
		g.compare(before, after)
	}
	if err := g.check(ctx); err != nil {
		return fmt.Errorf("cannot check the server: %w", err)
	}
	if !g.server.Alive() {
		return errors.New("the server ended by itself")
	}
	return nil
}

// load lets everybody loose for a random time. Unless the round ends at rest, the server is gone when it returns.
func (g *game) load(ctx context.Context, how ending) error {
	lines := make([]*client.Conn, conns+readers+takers+1)
	for i := range lines {
		c, err := client.Dial(ctx, g.addr)
		if err != nil {
			return err
		}
		defer c.Close()
		lines[i] = c
	}
	sub, err := lines[conns+readers+takers].Subscribe(ctx, client.Subscribe{EventTypes: []string{"process.created", "process.terminated"}})
	if err != nil {
		return err
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { g.listen(ctx, sub) })
	for i, a := range g.actors {
		wg.Go(func() { a.run(ctx, lines[i%conns], &stop) })
	}
	for i := range readers {
		rng := rand.New(rand.NewPCG(g.rng.Uint64(), 1))
		wg.Go(func() { g.watch(ctx, lines[conns+i], rng, &stop) })
	}
	for i := range takers {
		rng := rand.New(rand.NewPCG(g.rng.Uint64(), 2))
		wg.Go(func() { g.take(ctx, lines[conns+readers+i], rng, &stop) })
	}
	time.Sleep(50*time.Millisecond + time.Duration(g.rng.Int64N(int64(450*time.Millisecond))))
	if how.idle() {
		stop.Store(true)
		sub.Close()
	} else if err := g.end(how); err != nil {
		return err
	}
	wg.Wait()
	return nil
}

// judge sorts the error of a request: lost means that nobody knows whether it took effect, alive that the connection goes on.
func (g *game) judge(err error, what string) (lost, alive bool) {
	var refusal *client.Error
	var gone *client.ConnError
	switch {
	case errors.As(err, &gone) && !errors.Is(err, client.ErrProtocol):
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
