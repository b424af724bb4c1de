package orchtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// full checks a refusal for want of room, which may be tried again.
func (k *talk) full(got reply, text string) {
	k.t.Helper()
	k.refuse(got, wire.ResourceExhausted, "%s", text)
	if !got.retryable {
		k.t.Error("not retryable")
	}
	if again := k.next("nobody at all"); again.retryable {
		k.t.Error("a later refusal is retryable")
	}
}

const (
	storeFull = "Envelope store is full"
	tableFull = "Session table is full"
)

func threeEnvelopes(c *orchestration.Config) { c.MaxEnvelopes = 3 }

// fill stores three envelopes, a second apart.
func (k *talk) fill() (ids [3]string) {
	for i := range ids {
		ids[i] = k.storedID()
		k.now = after(k.now, time.Second)
	}
	return ids
}

// stored checks which envelopes are there; it touches them.
func (k *talk) stored(want bool, ids ...string) {
	k.t.Helper()
	for _, id := range ids {
		if got := k.update(flat(id)); want != (got.code == wire.OK) {
			k.t.Errorf("envelope %s: %s %s, want it there: %v", id, got.code, got.msg, want)
		}
	}
}

// TestStoreFull: nothing that lives goes before an hour, and then the longest untouched one
// (envelope §5.3).
func TestStoreFull(t *testing.T) {
	k := newTalk(t, threeEnvelopes)
	ids := k.fill()
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
	k.full(k.clone(flat("x")), storeFull)
	k.stored(true, ids[0])
	k.now = after(clock(), time.Hour+time.Second-time.Millisecond)
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
	k.now = after(clock(), time.Hour+time.Second)
	fresh := k.storedID()
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
	k.stored(false, ids[1])
	k.stored(true, ids[0], ids[2], fresh)
	k.full(k.clone(flat("x")), storeFull)
}

// TestStoreFullEvictsTheEnded: terminated envelopes go first, longest untouched first, before any
// older one that lives.
func TestStoreFullEvictsTheEnded(t *testing.T) {
	k := newTalk(t, threeEnvelopes)
	ids := k.fill()
	k.now = after(k.now, 2*time.Hour)
	for _, id := range []string{ids[2], ids[1]} {
		k.body(k.update(flat(id, obj{"terminated": true})))
		k.now = after(k.now, time.Second)
	}
	first := k.storedID()
	k.stored(false, ids[2])
	second, _ := at(k.body(k.clone(nested("x", obj{"terminated": true}))), "identity.envelope_id")
	k.stored(false, ids[1])
	third := k.storedID()
	k.stored(false, second.(string))
	k.stored(true, first, third)
	fourth := k.storedID() // ids[0] lives, but no one touched it for hours
	k.stored(false, ids[0])
	k.stored(true, first, third, fourth)
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
}

// TestUpdateEndsAndRevives: what counts is how the stored envelope is now.
func TestUpdateEndsAndRevives(t *testing.T) {
	k := newTalk(t, threeEnvelopes)
	ids := k.fill()
	k.body(k.update(flat(ids[1], obj{"terminated": true})))
	k.body(k.update(flat(ids[1])))
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
	k.body(k.update(nested(ids[0], obj{"terminated": true})))
	k.storedID()
	k.stored(false, ids[0])
	k.stored(true, ids[1], ids[2])
}

// TestProcessEndedEndsTheEnvelope: a stored envelope whose id is the process's is terminated with
// it (envelope §5.2).
func TestProcessEndedEndsTheEnvelope(t *testing.T) {
	k := newTalk(t, threeEnvelopes)
	ids := k.fill()
	k.ended("nobody")
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
	k.ended(ids[1])
	k.ended(ids[1])
	k.storedID()
	k.stored(false, ids[1])
	k.stored(true, ids[0], ids[2])
	k.removed(ids[2])
	k.stored(true, ids[2])
}

// TestMaxSessions: the longest idle ended session makes room; none, no room (envelope §5.3).
func TestMaxSessions(t *testing.T) {
	k := newTalk(t, func(c *orchestration.Config) { c.MaxSessions = 3 })
	open := func(pid string, over ...obj) reply { return k.initialize(pid, line(1), flat("e", over...), false) }
	for _, pid := range []string{"a", "b", "c"} {
		k.body(open(pid))
		k.now = after(k.now, time.Second)
	}
	k.full(open("d"), tableFull)
	k.full(k.execute(flat("d"), line(1)), tableFull)
	k.refuse(open("d", obj{"current_stage": "zzz"}), wire.InvalidArgument, "Stage not found in pipeline: zzz")
	k.refuse(open("a"), wire.InvalidArgument, "Session already exists for process: a (use force=true to replace)")
	k.body(k.initialize("a", line(1), flat("e", obj{"interrupt_pending": true}), true))
	k.full(open("d"), tableFull)
	for _, pid := range []string{"b", "c"} {
		k.now = after(k.now, time.Second)
		k.terminates(k.report(pid, by("a1")), "COMPLETED", "Pipeline completed")
	}
	k.now = after(k.now, time.Second)
	k.terminates(k.next("b"), "COMPLETED", endedBefore)
	k.now = after(k.now, time.Second)
	k.body(k.state("c"))
	k.body(open("d"))
	k.refuse(k.next("c"), wire.NotFound, "Unknown process: c")
	k.terminates(k.next("b"), "COMPLETED", endedBefore)
	k.runs(k.execute(flat("e"), line(1)), "a1")
	k.refuse(k.next("b"), wire.NotFound, "Unknown process: b")
	k.full(open("f"), tableFull)
	k.ended("a")
	k.body(open("f"))
	k.refuse(k.next("a"), wire.NotFound, "Unknown process: a")
	if n := k.e.Active(); n != 3 {
		t.Errorf("%d sessions, want 3", n)
	}
	k.removed("d")
	k.body(open("g"))
	k.full(open("h"), tableFull)
}

// TestBoundsInBytes: the tables are bounded in bytes as in entries.
func TestBoundsInBytes(t *testing.T) {
	const size, most = 10_000, 200_000
	k := newTalk(t, func(c *orchestration.Config) { c.MaxSessionBytes, c.MaxEnvelopeBytes = most, most })
	big := obj{"outputs": obj{"o": obj{"x": strings.Repeat("x", size)}}}
	n := 0
	for ; ; n++ {
		got := k.initialize(fmt.Sprint(n), line(2), flat("e", big), false)
		if got.code != wire.OK {
			k.full(got, tableFull)
			break
		}
		if n > most/size {
			t.Fatalf("%d sessions of %d bytes, %d allowed", n, size, most)
		}
	}
	if n < 2 {
		t.Fatalf("only %d sessions", n)
	}
	k.body(k.report("0", failing("a1", "x")))
	k.ended("1")
	k.body(k.initialize("more", line(2), flat("e", big), false))
	k.refuse(k.next("1"), wire.NotFound, "Unknown process: 1")

	args := orchestration.CreateArgs{RawInput: []byte(strings.Repeat("x", size))}
	for n = 0; ; n++ {
		got := k.create(args)
		if got.code != wire.OK {
			k.full(got, storeFull)
			break
		}
		if n > most/size {
			t.Fatalf("%d envelopes of %d bytes, %d allowed", n, size, most)
		}
	}
	if n < 2 {
		t.Fatalf("only %d envelopes", n)
	}
}
