package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// adminOf serves bodies by path; a path without one is not known.
func adminOf(t *testing.T, bodies map[string]string) (addr string) {
	t.Helper()
	return adminFunc(t, func(path string) string { return bodies[path] })
}

// adminFunc serves what body returns for a path; a path without a body is not known.
func adminFunc(t *testing.T, body func(path string) string) (addr string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := body(r.URL.Path)
		if text == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func TestStatusOfARecoveringServer(t *testing.T) {
	addr := adminOf(t, map[string]string{
		"/healthz": `{"alive":true}`,
		"/readyz":  `{"ready":false,"reasons":["recovering"],"recovery":{"phase":"log","done":1,"total":8,"percent":12.5,"eta_secs":3.2}}`,
		"/version": `{"version":"v","revision":"r"}`,
		"/store":   `{"mode":"always","dir":"d","recovery":{"phase":"log"},"journal":{"appended_index":9},"warnings":[]}`,
	})
	s := &systemState{Admin: askAdmin(t.Context(), adminServer{addr: addr}, false)}
	err := s.verdict()
	if err == nil || cli.Exit(err) != cli.CodeUnavailable || !strings.Contains(err.Error(), "recovering (log, 12.5 %, 3.2 s to go)") {
		t.Errorf("verdict: %v", err)
	}
	text := fmt.Sprint(s.rows())
	for _, want := range []string{"[recovery log, 12.5 %, 3.2 s to go]", "[store always, d]", "[ready false recovering]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if !s.Admin.recovering() || (*adminState)(nil).recovering() {
		t.Error("who is recovering?")
	}
}

// TestStatusOfAnOlderServer: one that has no /store is asked for the rest.
func TestStatusOfAnOlderServer(t *testing.T) {
	bodies := map[string]string{"/healthz": `{"alive":true}`, "/readyz": `{"ready":true,"reasons":[]}`, "/version": `{"version":"v"}`}
	s := askAdmin(t.Context(), adminServer{addr: adminOf(t, bodies)}, false)
	if s.Error != "" || !s.Ready || s.Store != nil {
		t.Errorf("%+v", s)
	}
	bodies["/store"] = `nonsense`
	if s := askAdmin(t.Context(), adminServer{addr: adminOf(t, bodies)}, false); !strings.Contains(s.Error,
		"cannot understand the answer of") {
		t.Errorf("%+v", s)
	}
	if s := askAdmin(context.Background(), adminServer{addr: "127.0.0.1:1"}, false); !strings.Contains(s.Error,
		"cannot reach admin endpoint") {
		t.Errorf("%+v", s)
	}
}

func TestStoreLine(t *testing.T) {
	f := func(s ops.Store, want string) {
		t.Helper()
		if got := storeLine(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(ops.Store{Mode: "memory"}, "memory")
	f(ops.Store{Mode: "always", Dir: "d", Journal: &ops.Journal{Appended: 9, Durable: 8, QueueRecords: 1, QueueBytes: 40}},
		"always, d, durable 8 of 9, queue 1 (40 bytes), no snapshot")
	f(ops.Store{Mode: "interval", Dir: "d", Warnings: []string{"storage_full", "stopped"},
		Journal: &ops.Journal{Error: "why", LastSnapshot: &ops.Snapshot{Index: 5, AgeSecs: 61.4}}},
		"interval, d, durable 0 of 0, queue 0 (0 bytes), snapshot at 5 (1m1s ago), why, storage_full, stopped")
}

func TestDigestRows(t *testing.T) {
	d := ipcclient.Digest{Kernel: []string{"a", "b", "c", "d", "e", "g"}, Orchestration: []string{"o"}, Index: 7, Through: 7}
	whole := digestNumber(&d)
	var s table
	digestRows(&s, &d, whole)
	want := "[[digest " + whole + " (at index 7)] [kernel 0-3 a b c d] [kernel 4-4 e] [kernel common g] [orchestration 0-0 o]]"
	if got := fmt.Sprint(s); got != want || len(whole) != 16 {
		t.Errorf("%s, want %s", got, want)
	}
	d.Through = 9
	s = nil
	digestRows(&s, &d, whole)
	if s[0][1] != whole+" (of no one moment: 2 records were written meanwhile)" {
		t.Errorf("%s", s[0][1])
	}
	f := func(d ipcclient.Digest, same bool) {
		t.Helper()
		if got := digestNumber(&d); (got == whole) != same {
			t.Errorf("%+v: %s, before %s", d, got, whole)
		}
	}
	f(ipcclient.Digest{Kernel: d.Kernel, Orchestration: d.Orchestration, Index: 50, Through: 51}, true)
	f(ipcclient.Digest{Kernel: []string{"a", "b", "c", "d", "e", "h"}, Orchestration: []string{"o"}}, false)
	f(ipcclient.Digest{Kernel: []string{"a", "b", "c", "d", "e"}, Orchestration: []string{"g", "o"}}, false)
}
