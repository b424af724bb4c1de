package ops

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/obs"
)

func TestLatencyIsShown(t *testing.T) {
	c := newConfig(t)
	for _, path := range []string{"/latency", "/slowlog", "/connections"} {
		if code, _, _ := ask(c, "GET", path); code != 404 {
			t.Errorf("%s = %d without anything to show", path, code)
		}
	}
	c.Latencies = func() []obs.Latency {
		return []obs.Latency{{Protocol: "ipc", Method: "kernel.Ping", Count: 2, P99: 0.5}}
	}
	want := `{"latencies":[{"protocol":"ipc","method":"kernel.Ping","count":2,"errors":0,"sum_seconds":0,"p50_seconds":0,"p90_seconds":0,"p99_seconds":0.5,"p999_seconds":0}]}` + "\n"
	if code, body, _ := ask(c, "GET", "/latency"); code != 200 || body != want {
		t.Errorf("%d %s", code, body)
	}
	c.Slow = func() obs.SlowLog {
		return obs.SlowLog{ThresholdSeconds: 0.1, Total: 7, Entries: []obs.Slow{{ID: 7}, {ID: 6}, {ID: 5}}}
	}
	f := func(query string, entries int) {
		t.Helper()
		var l obs.SlowLog
		code, body, _ := ask(c, "GET", "/slowlog"+query)
		if err := json.Unmarshal([]byte(body), &l); code != 200 || err != nil || l.Total != 7 || l.ThresholdSeconds != 0.1 || len(l.Entries) != entries || l.Entries[0].ID != 7 {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
	f("", 3)
	f("?limit=1", 1)
	f("?limit=3", 3)
	f("?limit=4", 3)
}

// TestConnectionsAreLimitedAndSorted: a list has as many rows as are asked for, and the total.
func TestConnectionsAreLimitedAndSorted(t *testing.T) {
	c := newConfig(t)
	have := 0
	c.Connections = func() (rows []obs.Connection) {
		for i := range have {
			row := obs.Connection{ID: fmt.Sprintf("ipc-%d", i+1), Protocol: "ipc", BytesIn: int64(i % 7), AgeSeconds: float64(have - i)}
			if i%2 == 1 {
				row.ID, row.Protocol = fmt.Sprintf("http-%d", i+1), "http"
			}
			rows = append(rows, row)
		}
		return rows
	}
	list := func(query string) (code int, l Connections, body string) {
		code, body, _ = ask(c, "GET", "/connections"+query)
		_ = json.Unmarshal([]byte(body), &l)
		return code, l, body
	}
	if _, _, body := list(""); body != `{"total":0,"connections":[]}`+"\n" {
		t.Errorf("none are shown as %s", body)
	}
	f := func(n int, query string, total, rows int) {
		t.Helper()
		have = n
		if code, l, body := list(query); code != 200 || l.Total != total || len(l.Connections) != rows {
			t.Errorf("%d, %s: %d, %d of %d, %.100s", n, query, code, len(l.Connections), l.Total, body)
		}
	}
	f(defaultRows, "", defaultRows, defaultRows)
	f(defaultRows+1, "", defaultRows+1, defaultRows)
	f(maxRows+1, "?limit=10000", maxRows+1, maxRows)
	f(9, "?limit=3", 9, 3)
	f(9, "?protocol=http", 4, 4)
	f(9, "?protocol=exacta", 0, 0)
	if _, l, _ := list("?sort=bytes_in"); l.Connections[0].BytesIn != 6 || l.Connections[8].BytesIn != 0 {
		t.Errorf("%+v", l)
	}
	if _, l, _ := list("?sort=age"); l.Connections[0].ID != "ipc-1" || l.Connections[8].ID != "ipc-9" {
		t.Errorf("%+v", l)
	}
	for sort := range obs.ConnectionOrders {
		if code, l, body := list("?sort=" + sort); code != 200 || len(l.Connections) != 9 {
			t.Errorf("by %s: %d %s", sort, code, body)
		}
	}
	for query, want := range map[string]string{
		"?limit=0": "want 1 to 10000", "?limit=10001": "want 1 to 10000", "?limit=many": `limit \"many\"`,
		"?protocol=kernel": `protocol \"kernel\": want one of ipc, http, toolhost, threads, exacta`,
		"?sort=size":       "want one of age, bytes_in, bytes_out, id, idle, in_flight, streams, unsent",
	} {
		if code, _, body := list(query); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}
