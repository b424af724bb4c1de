package main

import (
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/fakekernel"
	"trunkline/bench/internal/load"
)

// TestFill: rows that are there from a run before are not made again.
func TestFill(t *testing.T) {
	f := func(there bool, want int) {
		t.Helper()
		srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
			if r.Method == evaluated && (!there || r.Str("pid") != load.PID(2)) {
				return fakekernel.Failure(r.ID, "NOT_FOUND", "no such process")
			}
			return fakekernel.OK(r.ID)
		})
		if err := fill(srv.Addr, 3); err != nil || srv.Count("CreateProcess") != want {
			t.Errorf("%v, %d processes created, want %d", err, srv.Count("CreateProcess"), want)
		}
	}
	f(true, 0)
	f(false, 3)
	if err := fill("127.0.0.1:1", 3); err == nil || !strings.Contains(err.Error(), "cannot ask the peer") {
		t.Errorf("nobody there: %v", err)
	}
}

// TestGivenStep: what a given server refuses leaves no sample, is reported, and ends no run.
func TestGivenStep(t *testing.T) {
	f := &field{o: options{rows: 10, workers: 1, window: 50 * time.Millisecond}}
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if r.Str("pid") != load.PID(0) {
			return fakekernel.Failure(r.ID, "UNAVAILABLE", "too many")
		}
		return fakekernel.OK(r.ID)
	})
	if got, err := f.givenStep(srv.Addr, 0, 1, 2).Measure(); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(f.missing) != 1 || !strings.Contains(f.missing[0], "peer GetProcess, 1×2: UNAVAILABLE: too many") {
		t.Errorf("missing %q", f.missing)
	}
	f.o.rows = 1
	got, err := f.givenStep(srv.Addr, 0, 1, 2).Measure()
	if err != nil || len(got) != 1 || got[0].Cell != cell(given, evaluated, 1, 2) || got[0].PerSec <= 0 || got[0].CPU != 0 || len(f.missing) != 1 {
		t.Errorf("%+v, %v, missing %q", got, err, f.missing)
	}
}

func TestEnterPeerRefuses(t *testing.T) {
	f := &field{o: options{peer: "nowhere"}}
	if err := f.enterPeer(); err == nil || !strings.Contains(err.Error(), `cannot use the peer "nowhere"`) {
		t.Errorf("%v", err)
	}
	f.o.peer = ""
	if err := f.enterPeer(); err != nil || len(f.entrants) != 0 {
		t.Errorf("%v, %d entrants without -peer", err, len(f.entrants))
	}
}
