package toolhost

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func keyed(aid, key, rest string) string {
	return `{"aid":"` + aid + `","idempotency_key":"` + key + `"` + rest + `}`
}

func conflict(aid, key string) string {
	return `{"ok":false,"error":"idempotency_conflict","aid":"` + aid + `","idempotency_key":"` + key + `"}`
}

func (r *rig) wantRuns(n int64) {
	r.t.Helper()
	if got := r.runs.Load(); got != n {
		r.t.Errorf("%d runs, want %d", got, n)
	}
}

func TestIdempotentHit(t *testing.T) {
	r := newRig(t, nil)
	p, q, stranger := r.open(Stdin), r.open(Unix), r.openAs(Unix, "else")
	for _, aid := range []string{"AID.COUNT.v1", "AID.AWAY.v1"} {
		before := r.runs.Load()
		p.want(keyed(aid, "k", `,"inputs":{"a": 1}`), okReply)
		p.want(keyed(aid, "k", `,"inputs":{"a":1},"request_id":"r"`), hitReply[:len(hitReply)-1]+`,"request_id":"r"}`)
		q.want(keyed(aid, "k", `,"input_json":" {\"a\":1} "`), hitReply) // white space does not count
		q.want(keyed(aid, "k", `,"inputs":{"a":1.0}`), conflict(aid, "k"))
		q.want(keyed(aid, "k", ``), conflict(aid, "k"))
		q.want(keyed(aid, "j", ``), okReply)
		stranger.want(keyed(aid, "k", ``), okReply)
		r.wantRuns(before + 3)
	}
	p.want(keyed("AID.COUNT.v1", `q\u0022\n`, ""), okReply)
	p.want(keyed("AID.COUNT.v1", `q\u0022\n`, `,"inputs":{"b":1}`), conflict("AID.COUNT.v1", `q\"\n`))
	p.want(`{"aid":"AID.COUNT.v1"}`, okReply) // no key, no memory
	p.want(`{"aid":"AID.COUNT.v1"}`, okReply)
}

// What is stored is every outcome of an execution that began (D17), and nothing else.
func TestWhatIsStored(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ToolTimeout = 50 * time.Millisecond })
	p := r.open(Stdin)
	r.broken.Store(true)
	crash := `,"dispatch_error":{"error":true,"aid":"AID.EXT.v1","type":"crash","detail":""}`
	late := `,"dispatch_error":{"error":true,"aid":"AID.WAIT.v1","type":"timeout","detail":""}`
	panicked := `,"dispatch_error":{"error":true,"aid":"AID.PANIC.v1","type":"exception","detail":"panic: boom"}`
	f := func(aid, status, err, rest string) {
		t.Helper()
		p.want(keyed(aid, "k", ""), toolReply("false", status, "{}", err, emptyDelta+rest))
		p.want(keyed(aid, "k", ""), toolReply("false", status, "{}", err, `,"idempotent_hit":true`+emptyDelta+rest))
	}
	f("AID.FAIL.v1", "TOOL_ERROR", "no", "")
	f("AID.MUTE.v1", "INVALID_PICK", "INVALID_PICK", "")
	f("AID.PANIC.v1", "TOOL_ERROR", "panic: boom", panicked)
	f("AID.EXT.v1", "TOOL_ERROR", "toolhost exit 3: ", crash)
	f("AID.WAIT.v1", "TOOL_ERROR", "toolhost timed out for AID.WAIT.v1", late)
	r.breaker.Done(false, brokenDispatch)
	p.want(keyed("AID.EXT.v1", "j", ""), toolReply("false", "BREAKER_TRIP", "{}", "circuit breaker open for AID.EXT.v1", emptyDelta))
	p.want(keyed("AID.COUNT.v1", "k", `,"ds_state":5`), fault("invalid ds_state: must be an object"))
	if got := r.srv.Stats().IdempotencyEntries; got != 5 {
		t.Errorf("%d entries, want 5", got)
	}
	close(r.gate)
}

// A hit has the caller's own delta and not the tool's (D16, D19).
func TestStateOnHit(t *testing.T) {
	r := newRig(t, nil)
	p, q := r.open(Stdin), r.open(Stdin)
	p.ask(keyed("AID.SET.v1", "k", ""))
	q.want(keyed("AID.SET.v1", "k", `,"ds_state":{"slots":{"2":{"type":"mine"}}}`), hitReply)
	if got := q.state(); got != `{"slots":{"2":{"type":"mine","provenance":"","content_json":"","size_bytes":0}}}` {
		t.Error(got)
	}
	q.want(keyed("AID.SET.v1", "k", `,"inputs":{"a":1},"ds_state":{"slots":{}}`), conflict("AID.SET.v1", "k"))
	if got := q.state(); got == `{"slots":{}}` {
		t.Error("a conflict changed the state")
	}
}

func TestIdempotencyTTL(t *testing.T) {
	r := newRig(t, nil)
	p := r.open(Stdin)
	p.want(keyed("AID.COUNT.v1", "k", ""), okReply)
	r.pass(time.Minute - 1)
	p.want(keyed("AID.COUNT.v1", "k", ""), hitReply)
	r.pass(1) // the hit does not make it live longer
	p.want(keyed("AID.COUNT.v1", "k", ""), okReply)
	r.wantRuns(2)
}

// Someone else executes the key: the stream waits, in its order, and gets the outcome as a hit.
func TestInFlight(t *testing.T) {
	r := newRig(t, nil)
	a, b, gone := r.open(Stdin), r.open(Stdin), r.open(Stdin)
	line := keyed("AID.WAIT.v1", "k", "")
	a.begin(line)
	r.awayBegun()
	b.begin(keyed("AID.WAIT.v1", "k", `,"request_id":1`), `{"aid":"AID.NOOP.v1","request_id":2}`)
	gone.begin(line)
	r.open(Stdin).want(keyed("AID.WAIT.v1", "k", `,"inputs":{"x":1}`), conflict("AID.WAIT.v1", "k"))
	if !b.blocked || !gone.blocked || r.srv.idem.Waiting() != 2 || r.srv.exec.pending.Load() != 1 {
		t.Fatal("nobody waits, or whoever does has a place of the executor")
	}
	gone.close()
	if r.srv.idem.Waiting() != 1 {
		t.Error("a session that is gone waits")
	}
	close(r.gate)
	if got := b.end(); got != hitReply[:len(hitReply)-1]+`,"request_id":1}`+"\n"+okReply[:len(okReply)-1]+`,"request_id":2}` {
		t.Error(got)
	}
	a.end()
	r.wantRuns(1)
}

// A reservation that is given up sends who waits for it back to step 7: one of them executes, the
// others wait on.
func TestReleasedReservation(t *testing.T) {
	r := newRig(t, nil)
	line := keyed("AID.WAIT.v1", "k", "")
	holder := r.open(Stdin).s.(*session)
	c := call{callState: callState{srv: r.srv, s: holder, entry: r.srv.cfg.Registry.find([]byte("AID.WAIT.v1"))}}
	if c.req.scan([]byte(line), nil) != "" || !c.req.readAID() || c.req.read(&holder.state) != "" {
		t.Fatal("bad line")
	}
	if _, next := c.begin(nil, false); next != stepStart {
		t.Fatal(next)
	}
	a, b := r.open(Stdin), r.open(Stdin)
	a.begin(line)
	b.begin(line)
	c.srv.exec.leave()
	c.cancel()
	for _, p := range []*peer{a, b} {
		p.pump()
		p.feed()
	}
	if !a.blocked || !b.blocked || r.srv.idem.Waiting() != 1 {
		t.Fatal("not one of the two executes")
	}
	close(r.gate)
	got := a.end() + b.end()
	if strings.Count(got, `"ok":true`) != 2 || strings.Count(got, `"idempotent_hit":true`) != 1 {
		t.Error(got)
	}
	r.wantRuns(1)
}

func TestIdempotencyFull(t *testing.T) {
	const limit = 1024
	r := newRig(t, func(c *Config) { c.Queue, c.Events = 2*limit, nil })
	for i := range limit {
		r.open(Stdin).begin(keyed("AID.WAIT.v1", fmt.Sprint(i), ""))
	}
	p := r.open(Stdin)
	p.want(keyed("AID.COUNT.v1", "one more", ""), fault("idempotency_cache_full"))
	p.want(keyed("AID.WAIT.v1", "0", `,"inputs":{"x":1}`), conflict("AID.WAIT.v1", "0"))
	p.want(`{"aid":"AID.COUNT.v1"}`, okReply)
	close(r.gate)
}

// Old outcomes make room, the one that was used least recently first (D18).
func TestIdempotencyEviction(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Events = nil })
	p := r.open(Stdin)
	for i := range 1024 {
		p.ask(keyed("AID.COUNT.v1", fmt.Sprint(i), ""))
	}
	p.want(keyed("AID.COUNT.v1", "0", ""), hitReply)
	p.want(keyed("AID.COUNT.v1", "1024", ""), okReply)
	p.want(keyed("AID.COUNT.v1", "0", ""), hitReply)
	p.want(keyed("AID.COUNT.v1", "1", ""), okReply)
	if got := r.srv.Stats().IdempotencyEntries; got != 1024 {
		t.Errorf("%d entries", got)
	}
}

// The result is shown to the one that holds the token of the execution, or one that is still good
// (D20).
func TestHitNeedsLease(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases = EnforceOn })
	p := r.open(Stdin)
	ask := func(token, want string) {
		t.Helper()
		p.want(keyed("AID.WRITE.v1", "k", `,"_lease_token":"`+token+`"`), want)
	}
	rejected := func(reason string) string { return `{"ok":false,"error":"lease_rejected","reason":"` + reason + `"}` }
	first, other := p.lease(`"tool_aid":"AID.WRITE.v1","ttl_ms":1000`), p.lease(`"tool_aid":"AID.WRITE.v1"`)
	small, foreign := p.lease(`"tool_aid":"*","tier":0`), p.lease(`"tool_aid":"AID.EXEC.v1"`)
	ask(small, rejected("tier mismatch: lease=0 tool=1"))
	ask(first, okReply)
	r.pass(2 * time.Second)
	ask(first, hitReply) // spent and expired
	ask("", `{"ok":false,"error":"lease_required","tier":1,"aid":"AID.WRITE.v1"}`)
	ask("guess", rejected("not found"))
	ask(small, rejected("tier mismatch: lease=0 tool=1"))
	ask(foreign, rejected("tool mismatch: expected=AID.EXEC.v1 got=AID.WRITE.v1"))
	ask(other, hitReply)
	ask(other, hitReply) // not used up
	p.want(`{"aid":"AID.WRITE.v1","_lease_token":"`+other+`"}`, okReply)
	ask(other, rejected("already consumed"))
	p.want(`{"aid":"_lease.gc"}`, `{"ok":true,"active":2,"issued":4,"consumed":2,"rejected":5}`)
	r.wantRuns(2)
}
