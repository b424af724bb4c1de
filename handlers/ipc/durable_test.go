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
)

// TestEventsWaitForTheJournal: what an event shows to a subscriber survives a crash, so it leaves with the change's block, not before.
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

// TestSnapshotWaitsForChangesInFlight: a row may be in its table a moment before its record is in the journal. The snapshot ends after
// that record, and its window covers it.
func TestSnapshotWaitsForChangesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
		defer r.log.Close()
		ticket := r.svc.changing.enter()
		written := make(chan error, 1)
		go func() { written <- r.svc.Snapshot() }()
		synctest.Wait()
		if len(written) > 0 {
			t.Error("the snapshot did not wait")
		}
		r.svc.kernel.Create(r.now, &kernel.CreateArgs{PID: []byte("late"), UserID: []byte("u")}, nil)
		last := r.log.Appended()
		r.svc.changing.leave(ticket)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		var end journal.Index
		if _, err := r.log.LoadSnapshot(func(from io.Reader, _ journal.Index, _ uint64) error {
			all, err := io.ReadAll(from)
			if i := len(all) - 9; err == nil && i >= 0 && all[i] == endRecord {
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
