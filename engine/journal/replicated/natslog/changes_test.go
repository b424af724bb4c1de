package natslog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/natstest"
	"trunkline/fuzz/rounds"
)

// ledger is what owners have acknowledged.
type ledger struct {
	mu    sync.Mutex
	acked map[journal.Index]string
	count int
}

// write appends records until the owner has ended or done is closed, some of them longer than a
// message.
func (l *ledger) write(t *testing.T, j *journal.Log, rng *rand.Rand, done <-chan struct{}) {
	for {
		l.mu.Lock()
		l.count++
		rec := fmt.Sprint("record ", l.count)
		l.mu.Unlock()
		if rng.IntN(200) == 0 {
			rec += string(make([]byte, natstest.MaxPayload+rng.IntN(natstest.MaxPayload)))
		}
		at := j.Append([]byte(rec))
		if j.Await(context.Background(), at) != nil {
			return
		}
		l.mu.Lock()
		if old, ok := l.acked[at]; ok {
			t.Errorf("index %d was acknowledged as %.20q and as %.20q", at, old, rec)
		}
		l.acked[at] = rec
		l.mu.Unlock()
		select {
		case <-done:
			return
		case <-time.After(time.Duration(rng.IntN(10)) * time.Millisecond):
		}
	}
}

// check compares a log with what was acknowledged.
func (l *ledger) check(t *testing.T, state map[journal.Index]string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make(map[string]journal.Index)
	for at, rec := range state {
		if other, ok := seen[rec]; ok {
			t.Fatalf("%.20q is at %d and at %d", rec, at, other)
		}
		seen[rec] = at
	}
	for at, rec := range l.acked {
		if state[at] != rec {
			t.Fatalf("record %d was acknowledged as %.20q and is %.20q", at, rec, state[at])
		}
	}
}

// TestChanges: leaders step down and servers restart while owners append and lose the log to each
// other. What was acknowledged is in the log, at its index and once.
func TestChanges(t *testing.T) {
	c := natstest.New(t)
	var conns []*nats.Conn
	for i := range 3 {
		conns = append(conns, c.Connect(i))
		defer conns[i].Close()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	l := &ledger{acked: make(map[journal.Index]string)}
	var writers sync.WaitGroup
	for round := range rounds.Few(4, 12) {
		log := c.Open(conns[round%3], "changes", 2*time.Second)
		j, state := takeOver(t, c, func() (*journal.Log, map[journal.Index]string, error) { return claim(t, log, 5*time.Second) })
		l.check(t, state)
		done := make(chan struct{})
		for w := range 4 {
			seed := uint64(round*4 + w)
			writers.Go(func() { l.write(t, j, rand.New(rand.NewPCG(seed, 3)), done) })
		}
		time.Sleep(100 * time.Millisecond)
		if node := (round + 1) % 3; round%4 == 3 {
			c.Stop(node)
			c.Start(node)
			conns[node].Close()
			conns[node] = c.Connect(node)
		} else {
			c.Lead(conns[round%3], "changes", rng.IntN(3))
		}
		time.Sleep(100 * time.Millisecond)
		if round%2 == 0 {
			close(done) // else the owner loses the log while it writes
		} else {
			time.AfterFunc(200*time.Millisecond, func() { close(done) })
		}
		defer func() { _ = j.Close() }() // it returns why it has ended
	}
	log := c.Open(conns[0], "changes", 2*time.Second)
	j, state := takeOver(t, c, func() (*journal.Log, map[journal.Index]string, error) { return claim(t, log, 5*time.Second) })
	writers.Wait()
	l.check(t, state)
	t.Logf("%d of %d records were acknowledged", len(l.acked), l.count)
	must(t, j.Close())
}
