package projects

import (
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// export hands an ExportDiagnostics to the project.
func (r *rig) export(n int) *Request {
	q := &Request{ID: []byte(codec.ID{byte(n), 7}.String()), Key: codec.ID{byte(n), 7}, Command: codec.ExportDiagnostics, Timeout: 5, Origin: new(Origin)}
	r.p.Handle(q)
	return q
}

// TestBundlesBesideEverything: an ExportDiagnostics waits for nothing in any state; at the limit of
// those that run, and one more.
func TestBundlesBesideEverything(t *testing.T) {
	for state := range states {
		r := newRig()
		r.request(codec.Build, Args{})
		r.p.state = state
		for n := range maxExports {
			if q := r.export(n); r.answers[q] != "" || len(r.works) != n+2 || !r.p.Busy() {
				t.Fatalf("%d in %s: %s", n, state, r.answers[q])
			}
		}
		r.want(t, r.export(maxExports), "RES-004")
		r.works[1].Bundle = "/b.zip"
		q := r.works[1].Request
		if r.finish(1, nil, false); !strings.Contains(r.answers[q], `"result":{"bundle_path":"/b.zip"}`) {
			t.Error(r.answers[q])
		}
		if q := r.export(maxExports + 1); r.answers[q] != "" {
			t.Error(r.answers[q])
		}
	}
}

// TestBundlesThatAreLate: the time limit counts until the file has its name (exacta §4.0.3).
func TestBundlesThatAreLate(t *testing.T) {
	r := newRig()
	early, late := r.export(1), r.export(2)
	r.p.Expired(early)
	r.p.Expired(late)
	r.finish(0, errcode.New("IPC-010", ""), false)
	r.want(t, early, "IPC-008")
	r.finish(0, nil, false) // it had its name
	r.want(t, late, "")
	if got := r.events(0); got != "ErrorRaised, a bundle of diagnostics was written" || r.p.Busy() {
		t.Error(got)
	}
}

// TestCloseWaitsForBundles; what comes behind it is behind it.
func TestCloseWaitsForBundles(t *testing.T) {
	r := newRig()
	first := r.export(1)
	closing := r.request(codec.CloseProject, Args{})
	behind := r.export(2)
	if len(r.answers) > 0 || len(r.works) != 1 {
		t.Fatal(r.answers)
	}
	r.finish(0, nil, false)
	r.want(t, first, "")
	r.want(t, closing, "")
	r.want(t, behind, "ST-003")
}

// TestHistory at its limits: the oldest go, and texts are cut.
func TestHistory(t *testing.T) {
	r := newRig()
	q := r.request(codec.ApplyDiffSet, Args{})
	r.finish(0, nil, false)
	for range maxRecords - 2 {
		r.p.progress(q, q.flow, "apply", 1, 1)
	}
	r.p.log(q, q.flow, "WARN", "FileGateway", strings.Repeat("x", maxRecordText))
	s := r.p.snapshot()
	if len(s.Debug) != maxRecords || len(s.Logs) != 2 || s.Debug[0].Event != "Response" || s.Debug[maxRecords-1].Message() != strings.Repeat("x", maxRecordText) {
		t.Errorf("%d records, the first %+v", len(s.Debug), s.Debug[0])
	}
	r.p.log(nil, q.flow, "WARN", "FileGateway", strings.Repeat("y", maxRecordText+1))
	s = r.p.snapshot()
	last := s.Debug[maxRecords-1]
	if len(s.Debug) != maxRecords || s.Debug[0].Event != "Progress" || len(last.Message()) != maxRecordText || !strings.HasSuffix(last.Message(), "y…") || last.RequestID.Bytes() != nil {
		t.Errorf("%d records, the last %+v", len(s.Debug), last)
	}
	for range maxRecords {
		r.p.log(nil, q.flow, "INFO", "FileGateway", "z")
	}
	if s = r.p.snapshot(); len(s.Logs) != maxRecords || s.Logs[0].Message() != "z" {
		t.Errorf("%d lines", len(s.Logs))
	}
	for range maxAnswered + 1 {
		r.request(codec.Resume, Args{})
	}
	if s = r.p.snapshot(); len(s.Requests) != maxAnswered || s.Requests[0].Command != codec.Resume || s.Requests[0].Code != "ST-001" {
		t.Errorf("%d requests", len(s.Requests))
	}
}

// TestHistoryHasNoTextOfClients: faults are remembered without values that may come from them.
func TestHistoryHasNoTextOfClients(t *testing.T) {
	r := newRig()
	f := func(err *errcode.Fault, want string) {
		t.Helper()
		r.p.noteFault(nil, err)
		s := r.p.snapshot()
		if got := s.Raised.Message(); got != want || s.Raised.Detail != "" || s.Logs[len(s.Logs)-1].Message() != err.Code+" "+want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	f(errcode.New("VAL-002", "mine", "mine"), "A constraint is violated: {constraint}.")
	f(errcode.New("VAL-004", "mine", "mine"), "The plan is not valid: {reason}.")
	f(errcode.New("FS-003", "mine", "mine"), "The path is outside the project: {path}.")
	f(errcode.New("BLD-002", "mine", "3"), "The build failed with 3 error(s).")
	r.p.logAbout(nil, r.p.newFlow(), "WARN", "Orchestrator", "a constraint", ": mine")
	if s := r.p.snapshot(); s.Logs[len(s.Logs)-1].Message() != "a constraint" || !strings.Contains(r.events(0), "a constraint: mine") {
		t.Error(r.events(0))
	}
}
