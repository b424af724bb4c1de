package ipc

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"trunkline/engine/journal"
	"trunkline/engine/journal/memstore"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
)

// TestEventsWaitForTheJournal: what an event shows to a subscriber survives a crash, so it leaves
// with the change's block, not before.
func TestEventsWaitForTheJournal(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 16)}
	r := newGatedRig(t, g, 1)
	defer func() { close(g.pass); r.log.Close() }()
	writer, reader := r.connect(), r.connect()
	reader.send(request("s", "commbus", "Subscribe", `{"event_types":["process.created"],"ack":true}`))
	if got := reader.next(); !strings.Contains(got, "commbus.subscribed") {
		t.Fatalf("the acknowledgement is %s", got)
	}
	for _, pid := range []string{"first", "second"} {
		writer.send(request("c", "kernel", "CreateProcess", `{"pid":"`+pid+`"}`))
		if reader.pump(); len(reader.out) > 0 {
			t.Fatalf("an event left before its change was safe: %s", reader.next())
		}
	}
	g.pass <- struct{}{}
	g.pass <- struct{}{}
	r.settled(writer)
	reader.pump()
	for _, pid := range []string{"first", "second"} {
		if got := reader.next(); !strings.HasPrefix(got, "03 ") || !strings.Contains(got, pid) {
			t.Errorf("the event of %s: %s", pid, got)
		}
	}
}

// TestLettersWaitForTheJournal: what other goroutines leave for a connection stays behind the
// replies that it holds, also when it holds so many that nothing more is made.
func TestLettersWaitForTheJournal(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 16)}
	r := newGatedRig(t, g, 1)
	r.svc.cfg.UnsentBytes = 100
	defer func() { close(g.pass); r.log.Close() }()
	asker, handler := r.connect(), handlerOf(r.rig)
	asker.send(request("1", "commbus", "Query", `{"query_type":"q"}`))
	query := handler.asked()[0]
	asker.send(request("2", "kernel", "CreateProcess", `{"pid":"p"}`))
	if s := asker.s.(*session); !s.deferralFull() || len(asker.out) > 0 {
		t.Fatalf("%d bytes are held, %d have left", len(s.deferred), len(asker.out))
	}
	handler.answer(query, "{}")
	if asker.pump(); len(asker.out) > 0 {
		t.Fatalf("left before the reply ahead of it: %s", asker.next())
	}
	g.pass <- struct{}{}
	r.settled(asker)
	for _, id := range []string{"2", "1"} {
		if got := asker.next(); !strings.HasPrefix(got, "02 ") || !strings.Contains(got, `"id":"`+id+`"`) {
			t.Errorf("reply %s: %s", id, got)
		}
	}
}

// TestSnapshotWaitsForThoseWhoChange: whatever may change something is in flight from before it
// looks at the clock: a snapshot that is taken then does not end before it.
func TestSnapshotWaitsForThoseWhoChange(t *testing.T) {
	f := func(name string, change func(r *journaledRig)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
				defer r.log.Close()
				now, written := r.svc.cfg.Now, make(chan error, 1)
				r.svc.cfg.Now = func() link.Instant {
					r.svc.cfg.Now = now
					go func() { written <- r.svc.Store().Snapshot() }()
					synctest.Wait()
					if len(written) > 0 {
						t.Error("the snapshot did not wait")
					}
					return now()
				}
				change(r)
				if err := <-written; err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	f("a request", func(r *journaledRig) { r.connect().send(request("1", "kernel", "CreateProcess", `{"pid":"p"}`)) })
	f("a sweep", func(r *journaledRig) { r.svc.Sweep() })
	f("a digest", func(r *journaledRig) { r.svc.Digests(nil) })
}

// TestSnapshotWaitsForChangesInFlight: a row may be in its table a moment before its record is in
// the journal. The snapshot ends after that record, and its window covers it.
func TestSnapshotWaitsForChangesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
		defer r.log.Close()
		ticket := r.svc.store.Enter()
		written := make(chan error, 1)
		go func() { written <- r.svc.Store().Snapshot() }()
		synctest.Wait()
		if len(written) > 0 {
			t.Error("the snapshot did not wait")
		}
		r.svc.kernel.Create(r.now, &kernel.CreateArgs{PID: []byte("late"), UserID: []byte("u")}, nil)
		last := r.log.Appended()
		r.svc.store.Leave(ticket)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		var end journal.Index
		if _, err := r.log.LoadSnapshot(func(from io.Reader, _ journal.Index, _ uint64) error {
			all, err := io.ReadAll(from)
			if i := len(all) - 9; err == nil && i >= 0 && all[i] == 'e' {
				end = binary.BigEndian.Uint64(all[i+1:])
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if end < last {
			t.Errorf("the window of the snapshot ends at %d, the change in flight has %d", end, last)
		}
	})
}
