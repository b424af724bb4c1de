//go:build !race

package mcp

import (
	"net/http"
	"testing"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// TestFrontAllocations bounds what an ordinary call costs: nothing but the header field with the
// request id is made again.
func TestFrontAllocations(t *testing.T) {
	claims, _ := verify("good")
	h := New(
		Config{
			CallsPerMinute: 1_000_000_000,
			Surface: method.Surface{Rows: method.Rows, Dispatcher: idle{}, IDs: fixedID,
				Verify: func(string) (*token.Claims, error) { return claims, nil }},
		},
	)
	in := &body{text: callText("ack_read", `{"thread_id":"th_1","last_read_seq":1}`)}
	r := request("POST", "http://127.0.0.1/mcp", "", "")
	r.ContentLength = int64(len(in.text))
	w := &null{head: http.Header{}}
	allocs := testing.AllocsPerRun(200, func() {
		in.at, r.Body = 0, in
		clear(w.head)
		h.ServeHTTP(w, r)
	})
	if allocs > 2 {
		t.Errorf("%v allocations, want at most 2", allocs)
	}
}
