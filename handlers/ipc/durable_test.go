package ipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/fuzz/kit/memstore"
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

// TestClosingWaitsForTheJournal: replies to what came before a malformed frame leave before the
// connection closes (kernel-ipc §2.3), although they wait for the journal; nothing behind it is
// read.
func TestClosingWaitsForTheJournal(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 16)}
	r := newGatedRig(t, g, 1)
	defer func() { close(g.pass); r.log.Close() }()
	p := r.connect()
	in := append(request("1", "kernel", "CreateProcess", `{"pid":"p"}`), 0, 0, 0, 0)
	if v := p.send(in); v != connection.Blocked || len(p.out) > 0 || len(p.in) == 0 {
		t.Fatalf("verdict %v, sent %q, %d bytes unread", v, p.out, len(p.in))
	}
	if v := p.send(request("2", "kernel", "CreateProcess", `{"pid":"late"}`)); v != connection.Blocked || len(p.out) > 0 {
		t.Fatalf("verdict %v, sent %q", v, p.out)
	}
	g.pass <- struct{}{}
	r.settled(p)
	if v := p.send(nil); v != connection.Close {
		t.Errorf("verdict %v", v)
	}
	if got := p.next(); !strings.Contains(got, `"id":"1","ok":true`) {
		t.Errorf("the reply is %s", got)
	}
	if len(p.out) > 0 {
		t.Errorf("%q follows", p.out)
	}
	var late kernel.PCB
	if r.svc.kernel.Get([]byte("late"), nil, &late) == kernel.OK {
		t.Error("a frame behind the malformed one was served")
	}
}

// TestSweepStopsBeforeTheJournalDoes: a sweep of more than the queue of the journal may hold ends
// early, and a later one goes on.
func TestSweepStopsBeforeTheJournalDoes(t *testing.T) {
	const processes, queue = 2500, 1000
	g := &gate{pass: make(chan struct{}, 1<<16)}
	for range cap(g.pass) / 2 {
		g.pass <- struct{}{}
	}
	r := newLimitedRig(t, nil, journal.Config{MaxQueueRecords: queue}, memstore.New(memstore.Options{}),
		func(s journal.Store) journal.Store { g.Store = s; return g })
	p := r.connect()
	for i := range processes {
		p.send(request("c", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u%d"}`, i, i)))
		p.send(request("t", "kernel", "TerminateProcess", fmt.Sprintf(`{"pid":"p%d"}`, i)))
		r.settled(p)
		p.out = nil
	}
	for len(g.pass) > 0 { // the disk is slow from now on
		<-g.pass
	}
	r.now.Mono += 48 * int64(time.Hour)
	r.svc.rt.Sweep()
	left := r.svc.kernel.Counts(r.now).Total
	if left == 0 || left == processes {
		t.Errorf("%d of %d processes are left", left, processes)
	}
	close(g.pass)
	for range 10 {
		r.settled(p)
		r.svc.rt.Sweep()
	}
	if left := r.svc.kernel.Counts(r.now).Total; left != 0 {
		t.Errorf("%d processes are left when the disk is fast again", left)
	}
	r.log.Close()
	if err := r.log.Err(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("the journal stopped: %v", err)
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
		t.Fatalf("%d bytes are held, %d have left", s.deferred.Len(), len(asker.out))
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
				now, written := r.svc.rt.Config.Now, make(chan error, 1)
				r.svc.rt.Config.Now = func() connection.Instant {
					r.svc.rt.Config.Now = now
					go func() { written <- r.svc.rt.Store.Snapshot() }()
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
	f("a sweep", func(r *journaledRig) { r.svc.rt.Sweep() })
	f("a digest", func(r *journaledRig) { r.svc.rt.Digests(nil) })
}

// TestSnapshotWaitsForChangesInFlight: a row may be in its table a moment before its record is in
// the journal. The snapshot ends after that record, and its window covers it.
func TestSnapshotWaitsForChangesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
		defer r.log.Close()
		ticket := r.svc.store.Enter()
		written := make(chan error, 1)
		go func() { written <- r.svc.rt.Store.Snapshot() }()
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
