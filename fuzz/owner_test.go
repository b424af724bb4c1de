package fuzz

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc"
)

// house owns the connections of one service, and the model that must agree with it.
type house struct {
	t     testing.TB
	svc   *ipc.Service
	model *model
	peers []*peer
	clock func(ms int64) // lets time pass for the timers of the bus
	rest  func()         // lets goroutines of the service come to rest
	told  func(received)
	ports uint64
}

func newHouse(t testing.TB, set settings) *house {
	h := &house{t: t, model: newModel(set), clock: func(int64) {}, rest: func() {}, told: func(received) {}}
	h.svc = newService(set, h.now)
	return h
}

// newService returns a service with the limits of set.
func newService(set settings, now func() connection.Instant) *ipc.Service {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	r := runtime.Config{MaxFrameBytes: set.maxFrame, KernelQueueCapacity: set.queueCapacity, Now: now}
	r.StreamBufferEvents, r.MaxProcesses = set.bufferEvents, set.maxProcesses
	r.DequeueLease, r.ProcessRetention = ms(set.lease), ms(set.retention)
	if set.lease == 0 {
		r.DequeueLease = -1
	}
	r.MaxSessions, r.SessionRetention = set.maxSessions, ms(set.sessionRetention)
	r.MaxEnvelopes, r.EnvelopeRetention = set.maxEnvelopes, ms(set.envelopeRetention)
	return ipc.NewService(ipc.Config{
		MaxStreamsPerConnection: set.maxStreams, MaxEventTypes: set.maxTypes,
		DefaultQueryTimeout: ms(set.queryDefault), MaxQueryTimeout: ms(set.queryMax),
		FramesPerTurn: set.framesPerTurn, UnsentBytes: set.unsentBytes, TurnBytes: set.turnBytes,
	}, runtime.New(r))
}

func (h *house) now() connection.Instant {
	return connection.Instant{Mono: 1e15 + h.model.ms*1e6, Wall: h.model.wall}
}

func (h *house) fail(p *peer, format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("connection %d: %s", slices.Index(h.peers, p), fmt.Sprintf(format, args...))
}

// peer is one connection and its owner: the wire of the client, the bytes read but not taken, and
// whether the session has asked to be pumped.
type peer struct {
	house *house
	port  *connection.Port
	sess  connection.Session
	conn  *conn
	wire  []byte // written by the client, not yet read by the owner
	in    []byte // read, not yet taken
	awake atomic.Bool
	held  bool // the session waits for work of its own: nothing is fed until it asks to be pumped
	shut  bool // the owner has closed the connection
}

// Wake implements connection.Owner.
func (p *peer) Wake(*connection.Port) { p.awake.Store(true) }

func (h *house) open() *peer {
	h.ports++
	p := &peer{house: h, port: connection.NewPort(h.ports, "test"), conn: h.model.open()}
	p.sess = h.svc.Open(p.port)
	p.port.SetOwner(p)
	h.peers = append(h.peers, p)
	if h.model.draining {
		p.sess.Drain(h.now())
		p.conn.drained = true
	}
	return p
}

// kept stands in the output buffer before every call, and must stay there.
var kept = []byte("kept")

// output returns the frames behind kept.
func (p *peer) output(out []byte) []received {
	if !bytes.HasPrefix(out, kept) {
		p.house.fail(p, "the output that was there is gone")
	}
	frames, err := readFrames(out[len(kept):], p.house.model.set.maxFrame)
	if err != nil {
		p.house.fail(p, "sent %v", err)
	}
	for _, f := range frames {
		p.house.told(f)
	}
	return frames
}

// deliver reads n bytes off the wire and has them taken.
func (p *peer) deliver(n int) {
	p.in = append(p.in, p.wire[:n]...)
	p.wire = p.wire[n:]
	p.feedAll()
	p.house.check()
}

func (p *peer) feedAll() {
	for !p.shut && !p.held && p.feed() == connection.Yield {
	}
}

// feed lends the session what was read, once.
func (p *peer) feed() connection.Verdict {
	set := &p.house.model.set
	lent := slices.Clone(p.in)
	used, out, v := p.sess.Feed(lent, slices.Clone(kept), p.house.now())
	for i := range lent {
		lent[i] = 0xCC
	}
	want, err := p.conn.take(p.in[:used])
	if err != nil {
		p.house.fail(p, "%v", err)
	}
	frames := p.output(out)
	if p.held = v == connection.Blocked; p.held && len(frames) == len(want)-1 {
		p.conn.mail = append(p.conn.mail, letter{frame: want[len(frames)], held: true})
		want = want[:len(frames)]
	}
	for i, f := range frames {
		if i >= len(want) {
			p.house.fail(p, "sent %v, which nobody expects", f)
		}
		if err := compare(want[i], f); err != nil {
			p.house.fail(p, "%v", err)
		}
	}
	if len(frames) < len(want) {
		p.house.fail(p, "did not send %v", want[len(frames)])
	}
	p.share(p.in[:used], frames)
	p.in = p.in[used:]
	_, _, next := cut(p.in, set.maxFrame)
	full := v == connection.Blocked && len(p.conn.mail) > 0 // answers wait to be taken before more is asked for
	if v == connection.More && next != 0 || v == connection.Close && next >= 0 || used == 0 && v != connection.More && v != connection.Close && !full {
		p.house.fail(p, "took %d bytes, says %v, and %x is left", used, v, p.in[:min(len(p.in), 64)])
	}
	if v == connection.Close {
		p.close()
	}
	return v
}

// share checks that one Feed kept to the connection's share: of frames, of input and of output
// (kernel-ipc §2.5).
func (p *peer) share(taken []byte, frames []received) {
	set := &p.house.model.set
	n, before := 0, 0
	for len(taken) > 0 {
		_, _, size := cut(taken, set.maxFrame)
		taken = taken[size:]
		if n++; len(taken) > 0 {
			before += size
		}
	}
	sent := len(kept)
	for _, f := range frames[:max(0, len(frames)-2)] { // an eviction and its reason are one answer
		sent += f.size
	}
	if n > set.framesPerTurn || before >= set.turnBytes+1 && n > 1 || sent > set.unsentBytes && len(frames) > 2 {
		p.house.fail(p, "took %d frames, %d bytes and more, sent %d and more in one turn", n, before, sent)
	}
}

// pump asks once for what the session has to send on its own account.
func (p *peer) pump() (more bool) {
	p.awake.Store(false)
	p.held = false
	p.port.Rearm()
	out, more := p.sess.Pump(slices.Clone(kept), p.house.model.set.chunkBytes, p.house.now())
	frames := p.output(out)
	chunks, last := 0, 0
	for _, f := range frames {
		if f.typ == streamChunk {
			chunks, last = chunks+f.size, f.size
		}
	}
	if chunks-last >= p.house.model.set.chunkBytes {
		p.house.fail(p, "sent %d bytes of chunks at once", chunks)
	}
	if err := p.conn.sent(frames, more); err != nil {
		p.house.fail(p, "%v", err)
	}
	if more {
		p.awake.Store(true)
	}
	p.feedAll()
	p.house.check()
	return more && !p.shut
}

func (p *peer) drain() {
	for !p.shut && p.pump() {
	}
}

// halfClose reads what is left of the wire, then reports the end (kernel-ipc §2.3).
func (p *peer) halfClose() {
	p.deliver(len(p.wire))
	p.serveHeld()
	if p.shut {
		return
	}
	p.in = nil
	p.sess.EOF(p.house.now())
	p.conn.halfClose()
	p.house.check()
}

// serveHeld has everything taken that was read.
func (p *peer) serveHeld() {
	for p.held {
		p.pump()
	}
}

// close ends the connection now.
func (p *peer) close() {
	p.sess.Closed()
	p.port.SetOwner(nil)
	p.conn.close()
	p.shut = true
	p.house.peers = slices.DeleteFunc(p.house.peers, func(o *peer) bool { return o == p })
	p.house.check()
}

// check holds every session against the model where the owner can see it: who asked to be pumped,
// and who is done.
func (h *house) check() {
	h.t.Helper()
	h.rest()
	for _, p := range h.peers {
		c, load := p.conn, p.sess.Load()
		if c.waiting() && !p.awake.Load() {
			h.fail(p, "has something to say and does not ask to be pumped")
		}
		inFlight := c.busy() || slices.ContainsFunc(c.mail, func(l letter) bool { return l.query || l.held })
		if load.Busy != inFlight {
			h.fail(p, "busy is %v, want %v", load.Busy, inFlight)
		}
		if done := (c.eof || c.drained) && !inFlight && len(c.mail) == 0; load.Done != done {
			h.fail(p, "done is %v, want %v", load.Done, done)
		}
	}
}
