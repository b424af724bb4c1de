package toolhost

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"

	"trunkline/codec/jsonx"
	"trunkline/engine/idem"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// call is one request from line to reply: the session's until it runs off the loop, then that of
// the goroutine that runs it until the reply is posted. Calls are pooled.
type call struct {
	// What outlives a request: the memory it needs.
	req    request
	idRoom []byte
	reply  []byte
	after  sessionstate.State // the tool's copy of the state
	input  tool.Call

	callState
}

// callState is what a call holds for one request only.
type callState struct {
	srv      *Server
	s        *session
	entry    *Entry
	id       requestID
	before   sessionstate.State // off the loop: the session's, with the request's own ds_state
	keyed    bool               // the key is reserved
	key      idem.Key
	hash     [sha256.Size]byte // of the input
	token    [sha256.Size]byte // hash of the lease's token
	holds    bool              // a token was consumed
	probe    bool              // of the breaker
	begun    int64             // ns of the monotonic clock
	ran      int64             // when the tool started, off the loop, ns; 0: it did not
	came     int64             // when the line was read, by the owner's clock, ns
	row      int               // of the meter
	end      atomic.Uint32     // off the loop: pending, settled or abandoned
	place    place
	changed  *sessionstate.State // off the loop: what becomes the session's state; nil: that stays
	op       *operation          // set for an internal operation
	runEnded string              // why it has ended the open run; empty: it has not
}

// The ends of a call off the loop (settle).
const (
	pending uint32 = iota
	settled
	abandoned // settled, and the tool may still use the call, which is therefore never used again
)

func (s *Server) putCall(c *call) {
	if c.end.Load() != abandoned {
		c.clear()
		s.calls.Put(c)
	}
}

// clear makes c ready for any request, and lets go of what it held.
func (c *call) clear() {
	c.req.release()
	c.callState, c.after, c.input = callState{}, sessionstate.State{}, tool.Call{}
	if c.idRoom, c.reply = c.idRoom[:0], c.reply[:0]; cap(c.reply) > keepScratch {
		c.reply = nil
	}
}

// next makes c, which did not leave the loop, ready for the next request of the turn: that
// overwrites the rest.
func (c *call) next() {
	if c.op != nil || c.req.hasState {
		c.clear()
		return
	}
	c.keyed, c.holds, c.probe = false, false, false
}

// begin runs steps 7 to 11 of toolhost §4.3 for c, whose tool may run on the loop if it is fast. It
// appends a reply if one of them ends it.
func (c *call) begin(out []byte, fast bool) (_ []byte, next step) {
	s := c.s
	if len(c.req.key) > 0 {
		if s.srv.kept() && s.srv.cfg.Journal.Saturated() {
			return appendFault(out, errOverloaded, c.id), stepDone
		}
		fast = fast && !s.srv.kept() // its start must be durable before it runs
		if out, next = c.reserve(out, c.identify()); next != stepRun {
			return out, next
		}
		c.keyed = true
	}
	if b := c.entry.Breaker; b != nil {
		var ok bool
		if c.probe, ok = b.Allow(); !ok {
			c.release()
			c.applyState()
			o := outcome{status: tool.BreakerTrip, err: "circuit breaker open for " + c.entry.AID}
			return o.appendReply(out, c.id), stepDone
		}
	}
	if !fast && !c.srv.exec.admit() {
		c.cancel()
		return appendFault(out, errOverloaded, c.id), stepDone
	}
	if s.enforced() && c.entry.Tier > 0 {
		if out, next = c.consume(out); next != stepRun {
			if !fast {
				c.srv.exec.leave()
			}
			c.cancel()
			return out, next
		}
	}
	c.applyState()
	if fast {
		return out, stepRun
	}
	return out, stepStart
}

// applyState gives the session the state that the request asks for.
func (c *call) applyState() {
	if c.req.hasState {
		c.req.applyState(&c.s.state)
		c.s.room.Share()
	}
}

type step uint8

const (
	stepRun   step = iota // the tool is to be run
	stepStart             // off the loop
	stepDone              // the reply is appended, or the session awaits it
)

// identify sets the key and the hash of the input, and reports whether the memo had them. It does
// not allocate.
func (c *call) identify() (known bool) {
	r := &c.req
	r.name = idem.AppendName(r.name[:0], c.s.principal, r.aid, r.key)
	id := c.srv.memo.Find(r.name)
	if id == nil {
		c.key, c.hash = idem.KeyOf(c.s.principal, r.aid, r.key), r.inputHash()
		return false
	}
	if c.key = id.Key; id.Input != string(r.input) {
		c.hash = r.inputHash()
		return false
	}
	c.hash = id.InputHash
	return true
}

// reserve runs step 7; known reports whether the memo has the key and the hash.
func (c *call) reserve(out []byte, known bool) (_ []byte, next step) {
	s := c.s
	if s.answer != nil {
		return c.show(out, s.answer)
	}
	if s.keyNow == 0 {
		s.keyNow = c.srv.idem.Now()
	}
	begin := (*idem.Table).Begin
	if c.entry.repeatable {
		begin = (*idem.Table).BeginRepeatable
	}
	switch o, r := begin(c.srv.idem, s.keyNow, c.key, c.hash, s); o {
	case idem.Done:
		if !known { // a key that is used once costs no memory
			c.srv.memo.Keep(c.req.name, &c.key, c.req.input, &c.hash)
		}
		return c.show(out, r)
	case idem.Unknown:
		return c.unknown(out, known)
	case idem.Interrupted:
		if _, ok := c.srv.idem.Restart(c.key); !ok { // another caller was faster
			return c.reserve(out, known)
		}
	case idem.InFlight:
		s.waitsFor, s.awaits = c.key, otherCall
		return out, stepDone
	case idem.Conflict:
		return c.conflict(out), stepDone
	case idem.Full:
		return appendFault(out, "idempotency_cache_full", c.id), stepDone
	case idem.Crowded:
		return appendFault(out, errOverloaded, c.id), stepDone
	}
	return out, stepRun
}

func (c *call) conflict(out []byte) []byte {
	return c.id.end(jsonx.Build(out).Bool("ok", false).Text("error", "idempotency_conflict").
		Text("aid", c.entry.AID).Bytes("idempotency_key", c.req.key))
}

// hit answers with what an execution before gave. It does not allocate.
func (c *call) hit(out []byte, r *idem.Stored) []byte {
	s := c.s
	if s.enforced() && c.entry.Tier > 0 {
		if len(c.req.token) == 0 {
			return c.leaseRequired(out)
		}
		sum := sha256.Sum256(c.req.token)
		same := r.HasToken && subtle.ConstantTimeCompare(sum[:], r.Token[:]) == 1
		if !same {
			if no := c.srv.leases.use(s.now.Mono, c.req.token, c.entry, false); no.refuses() {
				return c.leaseRejected(out, &no)
			}
		}
	}
	c.applyState()
	if !s.observed && r.Status == uint8(tool.OK) && r.Error == "" && len(r.Dispatch) == 0 {
		start := len(out)
		if out = appendOK(out, r.Output, hitMember, c.id); len(out)-start <= maxReply {
			return out
		}
		out = out[:start]
	}
	o := hitOf(r)
	out = o.appendWithin(out, c.id, false)
	c.srv.finished(c.entry, &o, 0, c.id)
	return out
}

// consume is step 10.
func (c *call) consume(out []byte) (_ []byte, next step) {
	if len(c.req.token) == 0 {
		return c.leaseRequired(out), stepDone
	}
	if no := c.srv.leases.use(c.s.now.Mono, c.req.token, c.entry, true); no.refuses() {
		return c.leaseRejected(out, &no), stepDone
	}
	c.token, c.holds = sha256.Sum256(c.req.token), true
	c.srv.leaseUsed("toolhost.lease.consumed", c.req.token, c.entry, nil)
	return out, stepRun
}

// leaseRequired adds, for clients over TCP, how they get a lease.
func (c *call) leaseRequired(out []byte) []byte {
	o := jsonx.Build(out).Bool("ok", false).Text("error", "lease_required").
		Int("tier", int64(c.entry.Tier)).Text("aid", c.entry.AID)
	switch {
	case c.s.via != TCP:
	case c.srv.cfg.OperatorToken == "":
		o = o.Text("hint", "this server issues leases on stdin only: MACHINA_OPERATOR_TOKEN lets operators issue them here, MACHINA_LEASE_ENFORCE=0 asks for none")
	default:
		o = o.Text("hint", "an operator gets a token for one call by _lease.issue, with _operator_token; the call carries it in _lease_token")
	}
	return c.id.end(o)
}

func (c *call) leaseRejected(out []byte, no *rejection) []byte {
	c.srv.leaseUsed("toolhost.lease.rejected", c.req.token, c.entry, no)
	c.req.text = no.append(c.req.text[:0])
	return c.id.end(jsonx.Build(out).Bool("ok", false).Text("error", "lease_rejected").Bytes("reason", c.req.text))
}

// cancel undoes steps 7 and 8.
func (c *call) cancel() {
	if b := c.entry.Breaker; b != nil {
		b.Cancel(c.probe)
	}
	c.release()
}

// release gives the reservation up: a waiter goes back to step 7.
func (c *call) release() {
	if c.keyed {
		c.srv.idem.Release(c.key)
	}
}
