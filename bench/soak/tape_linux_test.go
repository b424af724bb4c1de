package main

import (
	"testing"
	"time"

	"trunkline/bench/internal/fakekernel"
	"trunkline/bench/internal/load"
)

// model is a kernel just good enough to refuse what the mix must never do.
type model map[string]string // pid to state

var legal = map[[2]string]bool{{"READY", "RUNNING"}: true, {"RUNNING", "READY"}: true}

// refuse returns the code of the error that a request deserves, "" if none.
func (m model) refuse(r fakekernel.Request) string {
	pid, to := r.Str("pid"), r.Str("new_state")
	state, known := m[pid]
	switch r.Method {
	case "CreateProcess":
		if known || len(pid) != 36 {
			return "FAILED_PRECONDITION"
		}
		m[pid] = "READY"
	case "TransitionState":
		if !legal[[2]string{state, to}] {
			return "FAILED_PRECONDITION"
		}
		m[pid] = to
	case "TerminateProcess":
		if state != "READY" {
			return "NOT_FOUND"
		}
		m[pid] = "TERMINATED"
	case "GetProcess", "RecordUsage", "CheckQuota":
		if !known {
			return "NOT_FOUND"
		}
	case "GetNextRunnable":
		return "NOT_FOUND"
	}
	return ""
}

func TestMixIsLegal(t *testing.T) {
	m := model{}
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if code := m.refuse(r); code != "" {
			return fakekernel.Failure(r.ID, code, r.Method+" "+r.Str("pid"))
		}
		return fakekernel.OK(r.ID)
	})
	if err := prepare(srv.Addr, 3); err != nil {
		t.Fatal(err)
	}
	var tapes []*load.Tape
	for conn := range 3 {
		tapes = append(tapes, mix(conn))
	}
	var r refusals
	s, err := load.Start(load.Config{Addr: srv.Addr, Tapes: tapes, Depth: 16, Refused: r.evaluate})
	if err != nil {
		t.Fatal(err)
	}
	for s.Replies() < 1000 && r.errors.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := s.Stop(); err != nil || r.errors.Load() > 0 || s.Dropped() > 0 {
		t.Errorf("%v, %d errors %v, %d dropped", err, r.errors.Load(), &r, s.Dropped())
	}
	if r.nothingRunnable.Load() == 0 {
		t.Error("NOT_FOUND of GetNextRunnable was not seen")
	}
}

func TestSubscriber(t *testing.T) {
	chunk := func(eventType string) []byte {
		return fakekernel.Frame(load.Chunk, []byte(eventType))
	}
	srv := fakekernel.Start(t, 0, func(fakekernel.Request) []byte {
		var out []byte
		for _, e := range []string{"commbus.subscribed", eventType, eventType, "commbus.gap", eventType} {
			out = append(out, chunk(e)...)
		}
		return out
	})
	s, err := subscribe(srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	go s.run()
	for s.events.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	s.stop()
	if s.events.Load() != 3 || s.gaps.Load() != 1 {
		t.Errorf("%d events, %d gaps, want 3 and 1", s.events.Load(), s.gaps.Load())
	}
	refusing := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "INVALID_ARGUMENT", "m") })
	if _, err := subscribe(refusing.Addr); err == nil {
		t.Error("subscribed although refused")
	}
}
