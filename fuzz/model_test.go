package fuzz

import (
	"fmt"
	"slices"
)

// settings are those of kernel-ipc §6 that a program may choose, times in milliseconds.
type settings struct {
	maxFrame, bufferEvents, maxStreams, maxTypes, queueCapacity, maxProcesses int
	maxSessions, maxEnvelopes                                                 int
	sessionRetention, envelopeRetention                                       int64
	lease, retention, queryDefault, queryMax                                  int64 // lease 0: none
	framesPerTurn, chunkBytes, unsentBytes, turnBytes                         int
}

func defaultSettings() settings {
	return settings{
		maxFrame: 5242880, bufferEvents: 16384, maxStreams: 32, maxTypes: 256, queueCapacity: 2048, maxProcesses: 1000000,
		lease: 30000, retention: 86400000, queryDefault: 5000, queryMax: 30000,
		maxSessions: 10000, maxEnvelopes: 10000, sessionRetention: 3600000, envelopeRetention: 86400000,
		framesPerTurn: 256, chunkBytes: 64 << 10, unsentBytes: 1 << 20, turnBytes: 1 << 20,
	}
}

// model is a server as the contract describes it: it gets the frames that were executed, with their
// times, and returns what must come.
type model struct {
	set settings
	ms  int64 // monotonic clock
	// wall is what timestamps are made of, in Unix milliseconds.
	wall int64

	procs                       []*proc // oldest creation first
	created, readied, completed int
	quota                       map[string]int64
	stamps                      map[string][]int64 // accepted requests by user
	cursors                     map[int64]int      // what each next_cursor stands for
	published, sent, executed   int64
	conns                       []*conn
	sessions                    []*pipelineSession
	stored                      []*storedEnvelope
	pending                     []*query
	draining                    bool
	answers                     map[[2]string]*keptAnswer
}

func newModel(set settings) *model {
	m := &model{set: set, wall: 1700000000000, stamps: map[string][]int64{}, cursors: map[int64]int{},
		quota: map[string]int64{}, answers: map[[2]string]*keptAnswer{}}
	for _, q := range quotaTable {
		m.quota[q.name] = q.builtin
	}
	return m
}

// conn is one connection in the model.
type conn struct {
	model   *model
	streams []*stream  // oldest first, those being flushed too
	mail    []letter   // answers to be sent when the server gets round to it
	due     []expected // Unsubscribe replies whose streams have ended
	eof     bool
	drained bool
}

// letter is an answer that did not come at once.
type letter struct {
	frame expected
	query bool // it answers a Query
	held  bool // later requests of the connection wait for it
}

func (m *model) open() *conn {
	c := &conn{model: m}
	m.conns = append(m.conns, c)
	return c
}

// take executes the frames of in, which must be whole, and returns what must be sent at once.
func (c *conn) take(in []byte) (out []expected, err error) {
	for len(in) > 0 {
		typ, payload, size := cut(in, c.model.set.maxFrame)
		if size <= 0 {
			return nil, fmt.Errorf("took %x, which is no whole frame", in[:min(len(in), 64)])
		}
		out = append(out, c.execute(typ, payload)...)
		in = in[size:]
	}
	return out, nil
}

// call is one request being executed.
type call struct {
	args
	model *model
	conn  *conn
	id    string
	out   []expected // frames besides the RESPONSE
}

// execute is the order of checks of kernel-ipc §3.2.
func (c *conn) execute(typ byte, payload []byte) []expected {
	k := &call{model: c.model, conn: c}
	var body object
	if typ != request {
		k.refuse("INVALID_ARGUMENT", "Unexpected message type: 0x%02X", typ)
	} else if r := readRequest(payload); k.accept(r) {
		k.body = r.body
		body = k.route(r.service, r.method)
	}
	if k.bad != nil {
		return append(k.out, c.model.bounded(k.id, k.bad.frame(k.id)))
	}
	if body != nil {
		k.out = append(k.out, c.model.answer(k.id, body))
	}
	return k.out
}

func (k *call) route(service, method string) object {
	methods := rulesOf(service)
	switch {
	case k.model.draining:
		k.bad = &refusal{code: "UNAVAILABLE", message: anyOf{""}}
	case methods == nil:
		k.refuse("NOT_FOUND", "Unknown service: %s", service)
	case methods[method] == nil:
		k.refuse("NOT_FOUND", "Unknown %s method: %s", service, method)
	default:
		return k.once(service, method, methods[method])
	}
	return nil
}

func rulesOf(service string) map[string]func(*call) object {
	return map[string]map[string]func(*call) object{"kernel": kernelMethods, "commbus": busMethods,
		"engine": engineMethods, "orchestration": orchestrationMethods}[service]
}

func (r *refusal) frame(id string) expected {
	e := append(object{{"code", r.code}, {"message", r.message}}, r.extras...)
	return expected{errorFrame, object{{"id", id}, {"ok", false}, {"error", e}}}
}

func (m *model) answer(id string, body object) expected {
	return m.bounded(id, expected{response, object{{"id", id}, {"ok", true}, {"body", body}}})
}

// bounded replaces a reply that is too big (kernel-ipc §3.5).
func (m *model) bounded(id string, f expected) expected {
	if n := f.size(); n > m.set.maxFrame {
		return refuse("RESOURCE_EXHAUSTED", "Response too large: %d bytes (max %d)", n, m.set.maxFrame).frame(id)
	}
	return f
}

// advance turns the clock: leases and queries run out (kernel-ipc §4.4, §4.17).
func (m *model) advance(ms int64) {
	m.ms, m.wall = m.ms+ms, m.wall+ms
	for _, p := range m.procs {
		if p.leased && m.set.lease > 0 && p.leaseEnd <= m.ms {
			p.leased = false
		}
	}
	for _, q := range slices.Clone(m.pending) {
		if q.deadline <= m.ms {
			m.end(q, refuse("TIMEOUT", "Query timeout after %dms: %s", q.timeout, q.typ).frame(q.id))
		}
	}
}

// halfClose is EOF: streams and handlers end at once, what was asked is answered (kernel-ipc §2.3).
func (c *conn) halfClose() {
	c.eof = true
	streams := c.streams
	c.streams = nil
	for _, s := range streams {
		s.detach()
		for _, w := range s.waiters {
			if f, last := w.release(c.model); last {
				c.mail = append(c.mail, letter{frame: f})
			}
		}
	}
}

// close drops everything the connection has (kernel-ipc §2.3, §5.5).
func (c *conn) close() {
	for _, s := range c.streams {
		s.detach()
	}
	m := c.model
	m.pending = slices.DeleteFunc(m.pending, func(q *query) bool { return q.caller == c })
	m.conns = slices.DeleteFunc(m.conns, func(o *conn) bool { return o == c })
	c.streams, c.mail = nil, nil
}

// drain is shutdown (kernel-ipc §2.7).
func (m *model) drain() {
	m.draining = true
	for _, q := range slices.Clone(m.pending) {
		m.cancel(q)
	}
	for _, c := range m.conns {
		c.drained = true
		for _, s := range c.streams {
			s.end()
		}
	}
}

// busy reports whether a request of the connection is in flight or a stream of it lives.
func (c *conn) busy() bool {
	return len(c.streams) > 0 || slices.ContainsFunc(c.model.pending, func(q *query) bool { return q.caller == c })
}

// waiting reports whether the connection has something to be sent.
func (c *conn) waiting() bool {
	return len(c.mail) > 0 || slices.ContainsFunc(c.streams, func(s *stream) bool { return s.ending || len(s.queue) > 0 })
}
