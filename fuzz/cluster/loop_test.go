package cluster

import (
	"encoding/json"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/transcode"
	"trunkline/engine/connection"
)

// loopTime is the longest that a turn of a loop takes, and that a wake-up is under way.
const loopTime = 50 * time.Microsecond

// loop is the event loop of a process.
func (l *life) loop() {
	for {
		select {
		case f := <-l.inbox:
			l.n.awake(l.ctx)
			if l.ctx.Err() != nil {
				return
			}
			l.turning.Store(true)
			f()
			l.turning.Store(false)
			l.note()
			if l.given {
				return
			}
			time.Sleep(l.loopDice.upTo(loopTime))
		case <-l.ctx.Done():
			return
		}
	}
}

// post has the loop call f.
func (l *life) post(f func()) {
	select {
	case l.inbox <- f:
	case <-l.ctx.Done():
	}
}

// later is post after a time.
func (l *life) later(d *dice, t time.Duration, f func()) {
	time.AfterFunc(d.upTo(t), func() { l.post(f) })
}

// note remembers the state at an index.
func (l *life) note() {
	if !l.serving {
		return
	}
	if at := l.svc.Runtime().Store.Appended(); at != l.noted {
		l.noted = at
		l.part.note(l.log.Epoch(), at, l.svc.Runtime().Store.Digest())
	}
}

// connID names a connection of a client.
type connID struct{ client, number int }

// conn is a connection to a process that owns the journal.
type conn struct {
	l       *life
	c       *client
	port    *connection.Port
	s       connection.Session
	dice    *dice
	in, out []byte
}

// take takes a request.
func (l *life) take(c *client, r *request) {
	switch {
	case !l.serving || l.giving && !(c.reads && l.n.w.bug == lingering):
		hint := ""
		if b, known := l.view.Owner(); known && b.Node != l.n.id {
			hint = b.Node
		}
		l.reply(c, answer{id: r.id, kind: notOwner, hint: hint})
	case r.key != nil:
		l.calls++
		(&call{l: l, c: c, id: r.id, key: r.key, dice: l.dice("call", l.calls)}).begin()
	default:
		id := connID{c.number, r.conn}
		k := l.conns[id]
		if k == nil {
			k = &conn{l: l, c: c, port: connection.NewPort(uint64(len(l.conns)+1), "client"), dice: l.dice("conn", id)}
			k.s = l.svc.Open(k.port)
			k.port.SetOwner(k)
			l.conns[id] = k
		}
		k.in = append(k.in, r.frame...)
		k.turn()
	}
}

// reply sends an answer.
func (l *life) reply(c *client, a answer) {
	a.from = l.name
	if a.kind == answered && l.part.last() != l {
		l.n.w.count(&l.n.w.stats.late)
	}
	l.n.w.way(c, l.n).carry(replies, func() { c.hear(a) })
}

// Wake implements connection.Owner.
func (k *conn) Wake(*connection.Port) { k.l.later(k.dice, loopTime, k.turn) }

// turn feeds and pumps the session until nothing moves any more, and sends what it has answered.
func (k *conn) turn() {
	for v := connection.Yield; v == connection.Yield; {
		var used int
		used, k.out, v = k.s.Feed(k.in, k.out, connection.Instant{})
		k.in = k.in[used:]
		for more := true; more; {
			k.port.Rearm()
			k.out, more = k.s.Pump(k.out, connection.DefaultChunkBytes, connection.Instant{})
		}
	}
	for {
		_, payload, n := frame.Split(k.out, 1<<20)
		if n <= 0 {
			return
		}
		var a message
		text, err := transcode.AppendJSON(nil, payload)
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err != nil {
			k.l.n.w.fail("%s answers %q: %v", k.l.name, payload, err)
		}
		k.out = k.out[n:]
		k.l.reply(k.c, a.answer())
	}
}

// message is a reply as it is on the wire.
type message struct {
	ID   string
	Body struct {
		counters
		PID   string
		State string
		Usage counters
		Hops  map[string]int64 `json:"edge_traversals"`
	}
	Error struct{ Code string }
}

type counters struct {
	Calls int64 `json:"llm_calls"`
	Sum   int64 `json:"tokens_in"`
}

func (m *message) answer() answer {
	a := answer{id: m.ID, kind: answered, code: m.Error.Code, pid: m.Body.PID, state: m.Body.State, counters: m.Body.Usage}
	if a.pid == "" {
		a.counters = m.Body.counters
	}
	for _, n := range m.Body.Hops {
		a.hops += n
	}
	return a
}
