package orchestration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/codec/wire"
)

// empty checks that nothing is left, and nothing counted.
func (r *rig) empty() {
	r.t.Helper()
	if s := r.o.Stats(); s != (Stats{}) {
		r.t.Errorf("left: %+v", s)
	}
	if len(r.o.waiting.byID) != 0 {
		r.t.Errorf("%d identifiers are waited with", len(r.o.waiting.byID))
	}
}

// TestSessionBytes follows a session through growth and shrinking, replacement and its end: what it
// counts for is what it takes.
func TestSessionBytes(t *testing.T) {
	r := newRig(t, Config{})
	bytes := func() int64 { return r.o.Stats().SessionBytes }
	r.ok(r.init("p", envOf("e", ""), false))
	r.audit(true)
	small := bytes()
	r.ok(r.report("p", "a1", `{"v":"`+strings.Repeat("x", 100_000)+`"}`))
	r.audit(true)
	if grown := bytes(); grown < small+100_000 {
		t.Errorf("%d bytes after %d and an output of 100000", grown, small)
	}
	r.ok(r.report("p", "a2", `{}`))
	r.audit(true)
	large := bytes()
	r.ok(r.report("p", "a1", `{"v":1}`)) // takes the place of the large one
	r.audit(true)
	if bytes() > large-100_000 {
		t.Errorf("%d bytes, %d before the large output went", bytes(), large)
	}
	r.ok(r.init("p", envOf("e", `,"raw_input":"`+strings.Repeat("y", 5000)+`"`), true))
	r.audit(true)
	if b := bytes(); b < small+5000 || b > small+6000 {
		t.Errorf("%d bytes after a replacement, the first one took %d", b, small)
	}
	r.o.Cancel([]byte("p"))
	r.o.ProcessEnded(&r.c, []byte("p"))
	r.audit(true)
	r.o.ProcessRemoved([]byte("p"))
	r.empty()
}

// TestReasonCounts: a reason may be any text, and the session keeps a copy.
func TestReasonCounts(t *testing.T) {
	r := newRig(t, Config{})
	f := func(reason string) int64 {
		r.ok(r.init("p", envOf("e", `,"terminated":true,"terminal_reason":"`+reason+`"`), true))
		r.audit(true)
		return r.o.Stats().SessionBytes
	}
	if short, long := f("x"), f(strings.Repeat("x", 9001)); long < short+2*9000 {
		t.Errorf("%d bytes, with 9000 bytes more of a reason %d", short, long)
	}
}

// TestEnvelopeBytes does the same for stored envelopes.
func TestEnvelopeBytes(t *testing.T) {
	r := newRig(t, Config{EnvelopeRetention: time.Minute})
	id, code := r.create("")
	r.ok(code)
	r.audit(true)
	for _, n := range []int{10, 70_000, 0, 500} {
		r.ok(r.update(envOf(id, `,"raw_input":"`+strings.Repeat("x", n)+`"`)))
		r.audit(true)
		if b := r.o.Stats().EnvelopeBytes; b < int64(n) || b > int64(n)+classRoom(n)+1000 {
			t.Errorf("%d bytes with an input of %d", b, n)
		}
	}
	r.o.Cancel([]byte(id))
	r.o.ProcessEnded(&r.c, []byte(id))
	r.audit(true)
	for range 9 {
		_, code = r.create(`,"metadata":{"k":[1,2,3]}`)
		r.ok(code)
	}
	r.audit(true)
	r.after(time.Minute + 1)
	if _, n := r.o.Sweep(r.c.Now); n != 10 {
		t.Errorf("swept %d", n)
	}
	r.empty()
}

// classRoom is how much larger than n bytes the allocator's class for them may be.
func classRoom(n int) int64 { return int64(n) / 4 }

// TestEviction: what makes room is no longer counted.
func TestEviction(t *testing.T) {
	r := newRig(t, Config{MaxSessions: 3, MaxEnvelopes: 3, SessionRetention: time.Minute, EnvelopeRetention: 2 * time.Hour})
	for i := range 10 {
		pid := fmt.Sprint("p", i)
		r.ok(r.init(pid, envOf(pid, ""), false))
		if i%2 == 0 {
			r.ok(r.report(pid, "a1", `{"v":"`+strings.Repeat("x", 100*i)+`"}`))
		}
		r.o.Cancel([]byte(pid))
		r.o.ProcessEnded(&r.c, []byte(pid))
		_, code := r.create(`,"terminated":true`)
		r.ok(code)
		r.audit(true)
	}
	if s := r.o.Stats(); s.Sessions != 3 || s.Envelopes != 3 {
		t.Errorf("%+v", s)
	}
	r.after(3 * time.Hour)
	r.o.Sweep(r.c.Now)
	r.empty()
}

// TestCounts: as many entries as allowed and not one more, while none may go.
func TestCounts(t *testing.T) {
	r := newRig(t, Config{MaxSessions: 2, MaxEnvelopes: 2})
	for i := range 2 {
		r.ok(r.init(fmt.Sprint("p", i), envOf("e", asks), false))
		_, code := r.create("")
		r.ok(code)
	}
	before := r.print()
	r.want(r.init("p2", envOf("e", asks), false), wire.ResourceExhausted)
	if string(r.c.Msg) != tableFull || !r.c.Retryable {
		t.Errorf("%s, retryable %v", r.c.Msg, r.c.Retryable)
	}
	_, code := r.create("")
	r.want(code, wire.ResourceExhausted)
	if string(r.c.Msg) != storeFull || !r.c.Retryable {
		t.Errorf("%s, retryable %v", r.c.Msg, r.c.Retryable)
	}
	if r.print() != before {
		t.Error("a refusal changed something")
	}
	r.ok(r.init("p1", envOf("e", asks), true)) // takes its own place
	r.audit(true)
}

// TestSessionBytesLimit: the bytes of all sessions reach their limit exactly, at the start and by a
// report.
func TestSessionBytesLimit(t *testing.T) {
	const output = `{"v":"................................................................................................................................"}`
	measure := func(cfg Config, steps int) (r *rig, codes []wire.Code) {
		r = newRig(t, cfg)
		codes = append(codes, r.init("p", envOf("e", ""), false))
		for i := range steps {
			codes = append(codes, r.report("p", fmt.Sprint("a", i%2+1), output))
		}
		return r, codes
	}
	for steps := range 3 {
		r, codes := measure(Config{}, steps)
		r.ok(codes[steps])
		most := r.o.Stats().SessionBytes
		r, codes = measure(Config{MaxSessionBytes: most}, steps)
		r.ok(codes[steps])
		r.audit(true)
		r, codes = measure(Config{MaxSessionBytes: most - 1}, steps)
		r.want(codes[steps], wire.ResourceExhausted)
		if string(r.c.Msg) != tableFull || !r.c.Retryable {
			t.Errorf("%s, retryable %v", r.c.Msg, r.c.Retryable)
		}
		r.audit(true)
	}
}

// TestReportMakesRoom: a report that needs more bytes than are left takes them from sessions that
// ended, never from its own.
func TestReportMakesRoom(t *testing.T) {
	r := newRig(t, Config{MaxSessionBytes: 20_000})
	r.ok(r.init("old", envOf("e", `,"terminated":true,"raw_input":"`+strings.Repeat("x", 8000)+`"`), false))
	r.ok(r.init("p", envOf("e", ""), false))
	r.ok(r.report("p", "a1", `{"v":"`+strings.Repeat("x", 9000)+`"}`))
	r.audit(true)
	if _, there := r.o.sessions.Get([]byte("old")); there {
		t.Error("the session that ended is still there")
	}
	before := r.print()
	r.want(r.report("p", "a2", `{"v":"`+strings.Repeat("x", 9000)+`"}`), wire.ResourceExhausted)
	if r.print() != before {
		t.Error("the refused report changed something")
	}
}

// TestEnvelopeBytesLimit: the same for stored envelopes, when they are made and when they are
// replaced.
func TestEnvelopeBytesLimit(t *testing.T) {
	f := func(do func(r *rig) wire.Code) {
		t.Helper()
		r := newRig(t, Config{})
		r.ok(do(r))
		most := r.o.Stats().EnvelopeBytes
		r = newRig(t, Config{MaxEnvelopeBytes: most})
		r.ok(do(r))
		r.audit(true)
		r = newRig(t, Config{MaxEnvelopeBytes: most - 1})
		r.want(do(r), wire.ResourceExhausted)
		if string(r.c.Msg) != storeFull || !r.c.Retryable {
			t.Errorf("%s, retryable %v", r.c.Msg, r.c.Retryable)
		}
		r.audit(true)
	}
	f(func(r *rig) wire.Code {
		_, code := r.create("")
		return code
	})
	f(func(r *rig) wire.Code {
		id, code := r.create("")
		r.ok(code)
		return r.update(envOf(id, `,"raw_input":"`+strings.Repeat("x", 3000)+`"`))
	})
}

// TestEndsWithoutRoom: what ends is let through though the bytes are used up.
func TestEndsWithoutRoom(t *testing.T) {
	r := newRig(t, Config{})
	r.ok(r.init("p", envOf("e", ""), false))
	_, code := r.create("")
	r.ok(code)
	full := r.o.Stats()
	r = newRig(t, Config{MaxSessionBytes: full.SessionBytes, MaxEnvelopeBytes: full.EnvelopeBytes})
	id, code := r.create("")
	r.ok(code)
	r.ok(r.init("p", envOf("e", ""), false))
	r.o.Cancel([]byte("p"))
	r.o.ProcessEnded(&r.c, []byte("p"))
	r.o.Cancel([]byte(id))
	r.o.ProcessEnded(&r.c, []byte(id))
	if s := r.session("p"); s.state != terminated || string(s.reason) != "USER_CANCELLED" {
		t.Errorf("state %d, %s", s.state, s.reason)
	}
	r.audit(false)
	if s := r.o.Stats(); s.SessionBytes > full.SessionBytes || s.EnvelopeBytes > full.EnvelopeBytes {
		t.Errorf("%+v counted, the limits are %+v", s, full)
	}
}

// TestAnswersCount: an answer that a session has not taken yet counts, and where there is no room
// for it the update is refused.
func TestAnswersCount(t *testing.T) {
	const large = 5000
	f := func(room int64, taken bool) {
		t.Helper()
		r := newRig(t, Config{MaxSessionBytes: 4000 + room})
		id, code := r.create(asks)
		r.ok(code)
		r.ok(r.init("p", envOf(id, asks), false))
		before := r.o.Stats()
		code = r.update(envOf(id, `,"interrupt":{"kind":"clarification","response":{"text":"`+strings.Repeat("x", large)+`"}}`))
		if !taken {
			if code != wire.ResourceExhausted || string(r.c.Msg) != tableFull || r.o.Stats() != before || r.session("p").state != waiting {
				t.Errorf("%v %s, %+v, before %+v", code, r.c.Msg, r.o.Stats(), before)
			}
			r.audit(true)
			return
		}
		r.ok(code)
		if grown := r.o.Stats().SessionBytes - before.SessionBytes; grown < large || grown > large+200 {
			t.Errorf("grown by %d", grown)
		}
		r.audit(true)
		_, code = r.o.State(&r.c, []byte("p"), nil)
		r.ok(code)
		r.audit(true)
		if s := r.session("p"); s.state != running || !strings.Contains(string(s.env), "xxxxx") {
			t.Errorf("state %d, %s", s.state, s.env)
		}
		r.o.ProcessRemoved([]byte("p"))
		if b := r.o.Stats().SessionBytes; b != 0 {
			t.Errorf("%d bytes left", b)
		}
	}
	f(0, false)
	f(2*large, true)
}

// TestAnswerComesTooLate: an answer to a session that ended while it was on its way counts for
// nothing in the end.
func TestAnswerComesTooLate(t *testing.T) {
	r := newRig(t, Config{})
	id, code := r.create(asks)
	r.ok(code)
	r.ok(r.init("p", envOf(id, asks), false))
	list := r.o.waiting.find([]byte(id))
	r.o.Cancel([]byte("p"))
	r.o.ProcessEnded(&r.c, []byte("p"))
	r.ok(r.c.decode(pack(envOf(id, `,"interrupt":{"kind":"clarification","response":{"text":"late"}}`))))
	a, ok := r.o.reserve(&r.c, list)
	if !ok {
		t.Fatal("no room")
	}
	r.o.resolve(&r.c, list, a)
	before := string(r.session("p").env)
	_, code = r.o.State(&r.c, []byte("p"), nil)
	r.ok(code)
	if s := r.session("p"); s.state != terminated || string(s.env) != before {
		t.Errorf("state %d, %q, before %q", s.state, s.env, before)
	}
	r.audit(true)
}
