package loadgen

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// overSockets runs a small plan against a real listener; nothing in it depends on how fast the
// machine is.
func overSockets(t *testing.T, target Target, s Schedule, mix ...Share) *Result {
	t.Helper()
	r, err := Run(t.Context(), Plan{
		Target: target, Schedule: s, Mix: mix, Conns: 3, Depth: 4, Count: 300,
		Duration: time.Minute, Timeout: time.Minute, Interval: time.Second,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Done+r.Total.Failed != 300 || r.Total.Due != 300 || r.Total.Bytes.Sent == 0 || r.Total.Bytes.Received == 0 {
		t.Errorf("%+v", r.Total)
	}
	return r
}

var schedules = []Schedule{{To: 3000}, {Kind: Max}}

func TestHTTPServers(t *testing.T) {
	var bad atomic.Int64
	ids := make(chan string, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/steps" || r.Header.Get("Content-Type") != "application/json" || len(body) == 0 {
			bad.Add(1)
		}
		select {
		case ids <- string(body):
		default:
		}
		switch {
		case strings.Contains(string(body), "000000000007"):
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case strings.Contains(string(body), "000000000008"):
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush() // chunked
			_, _ = io.WriteString(w, strings.Repeat("b", 10_000))
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	defer srv.Close()
	for _, s := range schedules {
		r := overSockets(t, Target{Protocol: ProtocolHTTP, Addr: srv.URL + "/steps"}, s, Share{Name: "step", Weight: 1, Body: []byte(`{"n":"{{seq}}"}`)})
		if r.Total.Errors["HTTP 503"] != r.Total.Failed || r.Total.Lost != 0 {
			t.Errorf("%+v", r.Total)
		}
	}
	seen := make(map[string]bool)
	close(ids)
	for id := range ids {
		seen[id] = true
	}
	// The second run repeats the numbers of the first; a closed loop leaves some out.
	if bad.Load() != 0 || len(seen) < 300 {
		t.Errorf("%d bad requests, %d different bodies", bad.Load(), len(seen))
	}
}

// TestAServerThatClosesAfterEachReply: it announces that, and is asked again at once. That is no
// lost connection.
func TestAServerThatClosesAfterEachReply(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }))
	defer srv.Close()
	r, err := Run(t.Context(), Plan{
		Target: Target{Protocol: ProtocolHTTP, Addr: srv.URL}, Schedule: Schedule{Kind: Max}, Conns: 2, Depth: 1, Count: 40,
		Duration: time.Minute, Timeout: time.Minute, Interval: time.Second,
	}, nil)
	if err != nil || r.Total.Done != 40 || r.Total.Lost != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// lineServer answers lines after a token was given.
func lineServer(t *testing.T, token string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go serveLines(nc, token)
		}
	}()
	return ln.Addr().String()
}

func serveLines(nc net.Conn, token string) {
	defer nc.Close()
	known := token == ""
	for in := bufio.NewScanner(nc); in.Scan(); {
		reply := `{"ok":true,"status":"OK"}`
		switch {
		case in.Text() == `{"aid":"_auth","token":"`+token+`"}`:
			known = true
		case !known:
			reply = `{"ok":false,"error":"auth_failed"}`
		case strings.Contains(in.Text(), "AID.FAIL.v1"):
			reply = `{"ok":false,"status":"TOOL_ERROR","error":"no"}`
		}
		if _, err := io.WriteString(nc, reply+"\n"); err != nil {
			return
		}
	}
}

func TestToolServers(t *testing.T) {
	addr := lineServer(t, "s3cret")
	target := Target{Protocol: ProtocolToolhost, Addr: "tcp://" + addr, Token: "s3cret"}
	for _, s := range schedules {
		r := overSockets(t, target, s, Share{Name: "AID.NOOP.v1", Weight: 3}, Share{Name: "AID.FAIL.v1", Weight: 1})
		bad := methodOf(r, "AID.FAIL.v1")
		if r.Total.Failed == 0 || bad.Failed != r.Total.Failed || bad.Done != 0 || r.Total.Errors["TOOL_ERROR"] != r.Total.Failed {
			t.Errorf("%+v, %+v", r.Total, bad)
		}
	}
	target.Token = "wrong"
	p := goodPlan()
	p.Target = target
	if _, err := Run(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "auth_failed") {
		t.Error(err)
	}
}

// TestTheAlarm waits at least as long as it was set to, often and briefly.
func TestTheAlarm(t *testing.T) {
	wait, stop := newAlarm()
	defer stop()
	for range 100 {
		before := time.Now()
		wait(50 * time.Microsecond)
		if passed := time.Since(before); passed < 45*time.Microsecond {
			t.Fatalf("waited %s", passed)
		}
	}
	wait(0)
}
