// Package memstream is a replicated.Stream in memory, for tests: one log that any number of clients
// share, as the nodes of a cluster do, each over a network of its own that loses, delays, doubles
// and reorders what goes over it, or is cut. Chance comes from a seed. With testing/synctest the
// delays take no time, and a seed repeats.
package memstream

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"trunkline/engine/journal/replicated"
)

// Faults are the behaviour of the networks. The zero value is a network that does everything at
// once.
type Faults struct {
	// Lose, LoseAnswer and Double are how many of a thousand appends do not arrive, get no answer,
	// and arrive twice.
	Lose, LoseAnswer, Double int
	// Delay is the longest time that an append or its answer takes, or a call of another kind. Each
	// takes a time of its own, so that they overtake each other.
	Delay time.Duration
	// Stale is how many of a thousand looks at the state show an older one.
	Stale int
}

// answerWithin is how long a client waits for an answer.
const answerWithin = 50 * time.Millisecond

// remembered is for how long a message that is sent twice is known.
const remembered = 2 * time.Minute

// Log is the log that clients share. Its methods may be called from any goroutine.
type Log struct {
	mu       sync.Mutex
	first    uint64 // sequence of messages[0]
	messages []replicated.Message
	ids      map[string]known
	sets     map[string][][]byte
	grown    chan struct{} // closed when a message is stored
	maxData  int
}

type known struct {
	seq uint64
	at  time.Time
}

// New returns an empty log.
func New() *Log {
	return &Log{first: 1, ids: make(map[string]known), sets: make(map[string][][]byte), grown: make(chan struct{})}
}

// last returns the sequence of the last message. The caller holds mu.
func (l *Log) last() uint64 { return l.first + uint64(len(l.messages)) - 1 }

// SetMaxData bounds the data of one message. 0: it has no bound.
func (l *Log) SetMaxData(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxData = n
}

// Len returns how many messages there are.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.messages)
}

var errCondition = errors.New("wrong last sequence")

// append stores a message as JetStream does: a known id is answered before the condition is looked
// at.
func (l *Log) append(a *replicated.Append) replicated.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.ids[a.ID]; ok && time.Since(k.at) < remembered {
		return replicated.Outcome{Seq: k.seq}
	}
	if l.last() != a.After {
		return replicated.Outcome{Err: errors.Join(replicated.ErrNotStored, errCondition)}
	}
	for range a.Marks {
		l.store(replicated.Message{Kind: replicated.KindMark, First: a.MarksFirst})
	}
	l.store(a.Message)
	for _, part := range a.Rest {
		l.store(replicated.Message{Kind: replicated.KindPart, First: a.First, Data: part})
	}
	l.ids[a.ID] = known{seq: l.last(), at: time.Now()}
	close(l.grown)
	l.grown = make(chan struct{})
	return replicated.Outcome{Seq: l.last()}
}

func (l *Log) store(m replicated.Message) {
	m.Seq = l.last() + 1
	l.messages = append(l.messages, m)
}

// Forget forgets all ids, as a leader without the memory of the one before it would.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.ids)
}

// Client returns a client of the log. seed is the chance of its network.
func (l *Log) Client(seed uint64, faults Faults) *Client {
	return &Client{log: l, faults: faults, rand: rand.New(rand.NewPCG(seed, 0x73747265616d)), rot: make(map[uint64]int)}
}
