package ipc

import (
	"strings"
	"sync/atomic"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// TestStaleReadsWait: where another process may own the state by now, nothing that was read leaves
// before a later record is durable, whatever kind of method it is.
func TestStaleReadsWait(t *testing.T) {
	var stale atomic.Bool
	r := newRecoveredRig(
		t,
		nil,
		journal.Config{},
		store.RecoverOptions{Stale: stale.Load},
		memstore.New(memstore.Options{}),
		nil,
	)
	defer r.log.Close()
	p := r.connect()
	p.send(request("1", "kernel", "CreateProcess", `{"pid":"p"}`))
	r.settled(p)
	_ = p.next()
	reads := [][2]string{{"GetProcess", `{"pid":"p"}`}, {"CheckQuota", `{"pid":"p"}`}, {"GetProcess", `{"pid":"ghost"}`}, {"CheckRateLimit", `{"user_id":"u","record":false}`}, {"GetProcessCounts", `{}`}}
	for _, read := range reads {
		q := r.connect()
		stale.Store(false)
		if q.send(request("2", "kernel", read[0], read[1])); len(q.out) == 0 {
			r.settled(q)
		}
		if len(q.out) == 0 {
			t.Fatalf("%s waits while the state is known to be current", read[0])
		}
		_ = q.next()
		stale.Store(true)
		if q.send(request("3", "kernel", read[0], read[1])); len(q.out) > 0 {
			t.Fatalf("%s of what may be stale: %s", read[0], q.next())
		}
		if err := r.log.Barrier(t.Context()); err != nil { // nothing that is there already confirms it
			t.Fatal(err)
		}
		if q.pump(); len(q.out) > 0 {
			t.Fatalf("%s of what may be stale: %s", read[0], q.next())
		}
		r.log.Append(nil)
		r.settled(q)
		if got := q.next(); !strings.Contains(got, `"3"`) {
			t.Errorf("%s: %s", read[0], got)
		}
	}
}
