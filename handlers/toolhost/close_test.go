package toolhost

import (
	"context"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
	"trunkline/handlers/toolhost/tool"
)

// drained runs Drain and returns a channel that is closed when it has returned.
func drained(ctx context.Context, srv *Server) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		srv.Drain(ctx)
		close(done)
	}()
	return done
}

// TestDrainWaitsForToolsWithoutCallers: a caller who has gone is no reason to end a tool (toolhost
// §2.3).
func TestDrainWaitsForToolsWithoutCallers(t *testing.T) {
	r := newRig(t, nil)
	<-drained(t.Context(), r.srv) // nothing runs
	p := r.open(Unix)
	p.begin(keyed("AID.WAIT.v1", "k", ""))
	r.awayBegun()
	p.close()

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	<-drained(short, r.srv)
	if short.Err() == nil {
		t.Error("a drain ended while a tool ran")
	}
	done := drained(t.Context(), r.srv)
	close(r.gate)
	<-done
	r.open(Unix).want(keyed("AID.WAIT.v1", "k", ""), hitReply)
}

// TestACallWhoseCallerIsGoneIsTimed, as a failure, whether or not its tool has ended before.
func TestACallWhoseCallerIsGoneIsTimed(t *testing.T) {
	rec := obs.NewRecorder(0, 1)
	r := newRig(t, func(c *Config) { c.Recorder = rec })
	early, late := r.open(Unix), r.open(Unix)
	early.begin(`{"aid":"AID.WAIT.v1"}`)
	late.begin(`{"aid":"AID.AWAY.v1"}`)
	r.awayBegun()
	early.close()
	<-late.wake // its reply is there
	late.close()
	close(r.gate)
	r.awayEnded()
	for _, l := range rec.Latencies() {
		if l.Protocol == "toolhost" && (l.Count != 1 || l.Errors != 1) {
			t.Errorf("%+v", l)
		}
	}
	if n := len(rec.Latencies()); n != 4 { // two methods, two steps
		t.Errorf("%d rows", n)
	}
}

// TestHungToolsGiveUpTheirSlots: as many as there are slots; more than that keep theirs, so that
// what hangs is bounded.
func TestHungToolsGiveUpTheirSlots(t *testing.T) {
	const slots = 2
	r := newRig(t, func(c *Config) { c.Executors, c.ToolTimeout = slots, 30*time.Millisecond })
	r.begun = make(chan struct{}, 4*slots)
	late := `"error":"toolhost timed out for AID.`
	p := r.open(Unix)
	for i := range 2 * slots {
		if got := p.ask(`{"aid":"AID.WAIT.v1"}`); !strings.Contains(got, late+"WAIT") {
			t.Fatalf("hung tool %d: %s", i, got)
		}
		if i == slots-1 {
			p.want(`{"aid":"AID.AWAY.v1"}`, okReply) // all hang that may, and none is in the way
		}
	}
	if got := p.ask(`{"aid":"AID.AWAY.v1"}`); !strings.Contains(got, late+"AWAY") {
		t.Errorf("with every slot hung: %s", got)
	}
	if n := r.srv.exec.abandoned.Load(); n != slots {
		t.Errorf("%d abandoned, want %d", n, slots)
	}
	close(r.gate)
	r.awayEnded()
	if n, held := r.srv.exec.abandoned.Load(), len(r.srv.exec.slots); n != 0 || held != 0 {
		t.Errorf("%d abandoned and %d slots taken after all have ended", n, held)
	}
	p.want(`{"aid":"AID.AWAY.v1"}`, okReply)
}

// TestTheEndOfTheServerIsNoTimeout: what it cuts short is reported as unknown and is not kept.
func TestTheEndOfTheServerIsNoTimeout(t *testing.T) {
	begun := make(chan struct{}, 2)
	r := newRig(t, func(c *Config) {
		patient := Entry{Descriptor: tool.Descriptor{AID: "AID.PATIENT.v1"}, Tool: toolFunc(func(ctx context.Context, c *tool.Call) tool.Result {
			begun <- struct{}{}
			<-ctx.Done()
			return tool.Broken(c.AID, tool.Crash, 137, "")
		})}
		worker := patient
		worker.AID, worker.External = "AID.WORKER.v1", true
		c.Registry, _ = NewRegistry([]Entry{patient, worker})
	})
	aids := []string{"AID.PATIENT.v1", "AID.WORKER.v1"}
	peers := make([]*peer, len(aids))
	for i, aid := range aids {
		peers[i] = r.open(Unix)
		peers[i].begin(keyed(aid, "k", ""))
		<-begun
	}
	if err := r.srv.Close(); err != nil {
		t.Fatal(err)
	}
	for i, aid := range aids { // the key is released before the reply is made
		if got := peers[i].end(); !strings.Contains(got, `"error":"`+unknownOutcome+`"`) || !strings.Contains(got, `"type":"exception"`) {
			t.Errorf("%s: %s", aid, got)
		}
	}
	if n := r.srv.Stats().IdempotencyEntries; n != 0 {
		t.Errorf("%d outcomes kept", n)
	}
}

// TestCloseDoesNotWaitForEver: for a tool that hangs.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	r := newRig(t, nil)
	p := r.open(Unix)
	p.begin(`{"aid":"AID.WAIT.v1"}`)
	r.awayBegun()
	if err := r.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if r.srv.exec.pending.Load() == 0 {
		t.Error("it did not hang")
	}
	close(r.gate)
	r.awayEnded()
	p.end()
}
