package soak

import (
	"errors"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/fuzz/kit/fakekernel"
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
		if code := m.refuse(r); r.Method == "GetNextRunnable" {
			return fakekernel.Failure(r.ID, code, nothingRunnable)
		} else if code != "" {
			return fakekernel.Failure(r.ID, code, r.Method+" "+r.Str("pid"))
		}
		return fakekernel.OK(r.ID)
	})
	if err := load.CreateRows(srv.Addr, 0, 3*rowsPerConn); err != nil {
		t.Fatal(err)
	}
	var tapes []*load.Tape
	for conn := range 3 {
		tapes = append(tapes, mix(conn))
	}
	var r refusals
	s, err := load.Start(load.Config{Addr: srv.Addr, Tapes: tapes, Depth: 16, Refused: r.count})
	if err != nil {
		t.Fatal(err)
	}
	for s.Replies() < 1000 && r.errors.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := s.Stop(); err != nil || r.errors.Load() > 0 || s.Dropped() > 0 {
		t.Errorf("%v, %d errors %v, %d dropped", err, r.errors.Load(), r.first.Load(), s.Dropped())
	}
	if r.nothingRunnable.Load() == 0 {
		t.Error("NOT_FOUND of GetNextRunnable was not seen")
	}
}

func TestRefusals(t *testing.T) {
	var r refusals
	f := func(code, message string, errs, nothing uint64) {
		t.Helper()
		if err := r.count(&load.Failure{Code: code, Message: message}); err != nil {
			t.Fatal(err)
		}
		if e, n := r.errors.Load(), r.nothingRunnable.Load(); e != errs || n != nothing {
			t.Errorf("%d errors and %d nothing runnable, want %d and %d", e, n, errs, nothing)
		}
	}
	f("NOT_FOUND", nothingRunnable, 0, 1)
	f("NOT_FOUND", "m", 1, 1)
	f("RESOURCE_EXHAUSTED", nothingRunnable, 2, 1)
	if first := r.first.Load(); first.Error() != "NOT_FOUND: m" {
		t.Errorf("the first refusal is %v", first)
	}
}

func TestGrowth(t *testing.T) {
	f := func(want float64, ok bool, pairs ...int64) {
		t.Helper()
		var readings []reading
		for i := 0; i < len(pairs); i += 2 {
			readings = append(readings, reading{time.Duration(pairs[i]) * time.Second, pairs[i+1]})
		}
		if got, evaluated := growth(readings); got != want || evaluated != ok {
			t.Errorf("growth(%v) = %v, %v, want %v, %v", pairs, got, evaluated, want, ok)
		}
	}
	f(0, false)
	f(0, false, 5, 100)
	f(0, false, 5, 100, 10, 200)
	f(0, true, 5, 100, 10, 200, 15, 200)
	f(0.25, true, 5, 100, 10, 200, 15, 250, 20, 220)
	f(0, true, 10, 200, 15, 100)
}

func TestFaults(t *testing.T) {
	f := func(want string, dropped uint64, loadErr error, rss int64, codes ...string) {
		t.Helper()
		var refused refusals
		for _, code := range codes {
			if err := refused.count(&load.Failure{Code: code, Message: "m"}); err != nil {
				t.Fatal(err)
			}
		}
		var r part.Report
		evaluate(&r, &refused, dropped, loadErr, []reading{{10 * time.Second, 100}, {15 * time.Second, rss}})
		if got := strings.Join(r.Faults, "; "); got != want || len(r.Notes) > 0 || !r.Checked {
			t.Errorf("faults %q, want %q; notes %q", got, want, r.Notes)
		}
	}
	f("", 0, nil, 110)
	f("2 error replies, first: INTERNAL: m", 0, nil, 110, "INTERNAL", "NOT_FOUND")
	f("2 requests without a reply", 2, nil, 110)
	f("the load failed: boom", 0, errors.New("boom"), 110)
	f("memory grew by 11.0 % after the first 10s, more than 10.0 %", 0, nil, 111)
	var r part.Report
	if evaluate(&r, new(refusals), 0, nil, nil); len(r.Faults) > 0 || len(r.Notes) != 1 {
		t.Errorf("too short: %+v", r)
	}
}
