package threadstore

import (
	"testing"

	"trunkline/engine/journal"
)

// TestSessions has the registry of threads §4.8 and §5.3: last arrival wins, an identifier has one
// holder, silence makes a runtime offline, and a heartbeat revives it.
func TestSessions(t *testing.T) {
	r := newRig(t, Config{})
	status := func(want SessionStatus, at int64) {
		t.Helper()
		if s := r.Session("w", "alice"); s == nil || s.Status != want || s.At != at {
			t.Fatalf("%+v, want %s at %d", s, want, at)
		}
	}
	r.beat(alice, live)
	began := r.now
	thief := *bob
	thief.Session = alice.Session
	if _, ref := r.Heartbeat(&thief, &live, r.now); ref.Code != SessionHeld {
		t.Error(ref)
	}
	r.now += DefaultTriggers.StaleAfter
	r.endStale(r.now)
	status(SessionIdle, began)
	r.now++
	r.endStale(r.now)
	status(SessionOffline, began)
	r.writeSessions()
	r.sync()
	r.crash(func(n int) int { return n })
	status(SessionOffline, began)
	r.beat(alice, live)
	status(SessionIdle, r.now)
	moved := *alice
	moved.Session = "s9"
	r.beat(&moved, live)
	if _, ref := r.Heartbeat(&thief, &live, r.now-1); ref.Code != OK {
		t.Error("an identifier that was left is still held", ref)
	}
	r.now -= 1000
	r.beat(&moved, live)
	status(SessionIdle, r.now+1000)
}

// TestSessionsWait: sessions that cannot be written now are written later, each once.
func TestSessionsWait(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 5 {
		a := *alice
		a.Agent, a.Session = string(rune('a'+i)), string(rune('p'+i))
		if _, ref := r.Heartbeat(&a, &live, r.now); ref.Code != OK {
			t.Fatal(ref)
		}
	}
	for _, want := range []journal.Index{3, 2, 0} {
		room, from := 3, r.st.Appended()
		r.full = func() bool { room--; return room < 0 }
		if r.writeSessions(); r.st.Appended()-from != want {
			t.Errorf("%d sessions are written, want %d", r.st.Appended()-from, want)
		}
	}
	r.full = nil
	before := r.Digest()
	r.sync()
	if r.crash(func(n int) int { return n }); r.Digest() != before {
		t.Error("other sessions after a start")
	}
}

// TestTables has the bounds of threads and sessions and cursors, at the limit and one more.
func TestTables(t *testing.T) {
	r := newRig(t, Config{MaxThreads: 1, MaxSessions: 1, MaxCursors: 1})
	id := r.create()
	if _, _, ref := r.Create(boss, &NewThread{Title: []byte("t")}, r.now); ref.Code != TooMany {
		t.Error(ref)
	}
	r.beat(alice, live)
	r.beat(alice, live)
	if _, ref := r.Heartbeat(bob, &live, r.now); ref.Code != TooMany {
		t.Error(ref)
	}
	r.post(alice, id, "x", "")
	r.sync()
	for a, want := range map[*Actor]Code{alice: OK} {
		if _, ref := r.Ack(a, id, 1, r.now); ref.Code != want {
			t.Error(ref)
		}
	}
	if _, ref := r.Ack(bob, id, 1, r.now); ref.Code != TooMany {
		t.Error(ref)
	}
}

// TestQuotas has the token buckets of posts.
func TestQuotas(t *testing.T) {
	r := newRig(t, Config{PostsPerAgent: 2, PostsPerThread: 3})
	id, other := r.create(), r.create()
	f := func(a *Actor, id []byte, key string, want Code, wait int64) {
		t.Helper()
		if _, ref := r.Post(a, id, textPost("x", key), r.now); ref.Code != want || ref.N != wait {
			t.Errorf("%+v, want %d after %d ms", ref, want, wait)
		}
	}
	f(alice, id, "k", OK, 0)
	f(alice, id, "k", OK, 0) // a repetition is free
	f(alice, other, "", OK, 0)
	f(alice, other, "", RateLimited, 30_000)
	f(bob, id, "", OK, 0)
	f(bob, id, "", OK, 0)
	f(boss, id, "", RateLimited, 20_000)
	r.now += 29_999
	f(alice, other, "", RateLimited, 1)
	r.now++
	f(alice, other, "", OK, 0)
}
