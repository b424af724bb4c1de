package cluster

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Times of a client.
const (
	// thinkTime is the longest between two requests.
	thinkTime = 40 * time.Millisecond
	// answerTime is how long it waits for an answer.
	answerTime = 400 * time.Millisecond
	// askTime is how long it looks for an owner.
	askTime = 2 * term
	// repeats is how often it sends a call with a key.
	repeats = 4
)

// request is what a client sends.
type request struct {
	id    string
	conn  int
	frame []byte
	key   *keyed // of a call; nil: frame is a request of the kernel
}

// kind is what kind of answer one is.
type kind int

const (
	answered kind = iota
	notOwner
	refused // by a machine without a process
)

// answer is what a client gets.
type answer struct {
	id    string
	from  string // a process
	kind  kind
	hint  string // who owns, of notOwner
	code  string // of an error
	pid   string
	state string
	counters
	hops   int64
	result string
}

// client asks the node that it believes to be the owner.
type client struct {
	w      *world
	number int
	reads  bool // and changes nothing, so that an owner that cannot write keeps it
	dice   *dice
	belief [maxPartitions]int // by partition
	conn   int
	asked  int
	heard  chan answer
}

func newClient(w *world, number int) *client {
	return &client{w: w, number: number, reads: number%2 == 1, dice: w.newDice("client", number), heard: make(chan answer, 64)}
}

// hear takes an answer. One that finds no room is lost.
func (c *client) hear(a answer) {
	select {
	case c.heard <- a:
	default:
	}
}

// run asks for one thing after the other.
func (c *client) run() {
	for time.Since(c.w.began) < lifetime {
		time.Sleep(c.dice.upTo(thinkTime))
		if c.reads && c.dice.hits(300) { // it connects again, to any node
			c.conn++
			for p := range c.w.parts {
				c.guess(p)
			}
		}
		if !c.reads && c.dice.hits(150) {
			c.call(c.w.keys.choose(c.dice))
			continue
		}
		c.do(c.w.procs.choose(c.dice, c.reads))
	}
}

// Outcomes of a request.
type outcome int

const (
	known   outcome = iota
	unsent          // it was not done, and will not be
	unheard         // it may be done or not
)

// send sends a request for a process until a node takes it, and waits for the answer. Tools are in
// partition 0, as those of the program.
func (c *client) send(p *process, ask func(id string) request) (answer, outcome) {
	part := 0
	if p != nil {
		part = p.partition
	}
	for end := time.Now().Add(askTime); time.Now().Before(end); time.Sleep(c.dice.upTo(20 * time.Millisecond)) {
		c.asked++
		r := ask(fmt.Sprint(c.number, "-", c.asked))
		r.conn = c.conn
		n := c.w.nodes[c.belief[part]]
		at := n.seats[0]
		if p != nil {
			at = n.seats[c.w.of(p.pid, n)]
		}
		c.give(at, &r)
		if r.key != nil && c.dice.hits(100) {
			c.give(at, &r)
		}
		switch a, ok := c.await(r.id); {
		case !ok:
			c.conn++
			c.guess(part)
			return a, unheard
		case a.kind == answered:
			return a, known
		default:
			c.guess(part)
			for i, n := range c.w.nodes {
				if n.id == a.hint {
					c.belief[part] = i
				}
			}
		}
	}
	return answer{}, unsent
}

func (c *client) guess(partition int) { c.belief[partition] = c.dice.below(len(c.w.nodes)) }

// give sends a request to what a node has of a partition.
func (c *client) give(s *seat, r *request) {
	c.w.way(c, s.n).carry(requests, func() {
		if l := s.alive(); l != nil {
			l.post(func() { l.take(c, r) })
		} else {
			c.w.way(c, s.n).carry(replies, func() { c.hear(answer{id: r.id, kind: refused}) })
		}
	})
}

// await waits for the answer to a request.
func (c *client) await(id string) (answer, bool) {
	late := time.NewTimer(c.dice.between(answerTime, answerTime+time.Millisecond))
	defer late.Stop()
	for {
		select {
		case a := <-c.heard:
			if a.id == id {
				return a, true
			}
		case <-late.C:
			return answer{}, false
		}
	}
}

// now is the time of a history.
func (c *client) now() int64 { return int64(time.Since(c.w.began)) }

// do asks for an operation on a process and notes what came of it.
func (c *client) do(p *process, op operation) bool {
	began := c.now()
	a, o := c.send(p, func(id string) request { return request{id: id, frame: op.frame(id, p.pid)} })
	c.w.event("client %d: %s %v: %d %+v", c.number, p.pid, op, o, a)
	noted := porcupine.Operation{ClientId: c.number, Input: op, Call: began, Return: c.now()}
	switch {
	case o == known && op.done(&a):
		c.w.count(&c.w.stats.answered)
		noted.Output = a
		if op.kind == opNext {
			p = c.w.procs.find(a.pid, p.partition)
		}
		c.w.procs.note(p, noted)
		return true
	case o == unheard && op.changes():
		c.w.count(&c.w.stats.unanswered)
		noted.Return = math.MaxInt64 // it may take effect at any time from now on
		if op.kind == opNext {
			c.w.procs.noteAll(p.partition, noted)
		} else {
			c.w.procs.note(p, noted)
		}
	}
	return false
}

// call makes a call with a key, again and again until it is answered.
func (c *client) call(k *keyed) bool {
	for range repeats {
		a, o := c.send(nil, func(id string) request { return request{id: id, key: k} })
		c.w.event("client %d: call %s: %d %+v", c.number, k.name, o, a)
		if o == known {
			k.answer(a.result)
			return true
		}
	}
	return false
}

// askAll reads every process and every key until all are answered.
func (c *client) askAll() {
	end := time.Now().Add(settleTime)
	until := func(what string, ask func() bool) {
		for !ask() {
			if time.Now().After(end) {
				c.w.fail("no owner answers for %s", what)
			}
			if c.w.failed() {
				return
			}
		}
	}
	for _, p := range c.w.procs.all() {
		until(p.pid, func() bool { return c.do(p, p.read()) })
	}
	for _, k := range c.w.keys.all() {
		until(k.name, func() bool { return c.call(k) })
	}
}
