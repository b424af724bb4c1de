package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
)

// TestPingEndsAtTheFirstFailure: what went well before is shown.
func TestPingEndsAtTheFirstFailure(t *testing.T) {
	addr, _ := kernelServer(t, func(n int) bool { return n < 3 })
	out, talk := asked(t, cli.CodeUnavailable, "ping", "--addr", addr, "--count", "5", "--interval", "0s")
	wantParts(t, out, addr, "  2 of 3  ")
	wantParts(t, talk, "trunkline: round trip 3 of 5 failed: connection to "+addr+" lost", "hint: is the server running?")
	out, talk = asked(t, cli.CodeUnavailable, "ping", "--addr", addr, "--json")
	var r pingResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.OK != 0 || r.Sent != 1 || r.Max != 0 {
		t.Errorf("%s, %v", out, err)
	}
	wantParts(t, talk, `"code":5`)
}

// TestPingHasAnOrder: no quantile is below the least or above the greatest.
func TestPingHasAnOrder(t *testing.T) {
	addr, _ := kernelServer(t, nil)
	out, _ := asked(t, 0, "rtt", "--addr", addr, "--count", "200", "--interval", "0s", "--json")
	var r pingResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.OK != 200 || r.Min <= 0 || r.P50 < r.Min || r.P99 < r.P50 || r.Max < r.P99 {
		t.Errorf("%+v", r)
	}
}

// TestPingOverHTTP takes any status for an answer, over one connection.
func TestPingOverHTTP(t *testing.T) {
	var conns atomic.Int64
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	out, _ := asked(t, 0, "ping", srv.URL, "-n", "3", "--interval", "0s", "--json")
	var r pingResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.OK != 3 || r.Target != srv.URL || conns.Load() != 1 {
		t.Errorf("%s, %v, %d connections", out, err, conns.Load())
	}
}
