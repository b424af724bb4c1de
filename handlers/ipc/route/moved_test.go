package route

import (
	"strings"
	"testing"

	"trunkline/engine/connection"
)

// TestAnOwnerEnds: what an owner refuses as it ends is answered by a refusal of the router's, which
// may be repeated, and so is what was not sent to it. Both keep their place among the replies of
// other partitions. Then the client is not read any more.
func TestAnOwnerEnds(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	pids := [2]string{b.create(0, "p", ""), b.create(1, "p", "")}
	get := func(id string, partition int) []byte {
		return request(id, "kernel", "GetProcess", `{"pid":"`+pids[partition]+`"}`)
	}
	w, l := b.wires[0], &b.s.legs[0]
	w.core.Drain(c.now)
	b.in = append(get("1", 0), get("2", 1)...)
	b.client()
	w.toCore, _ = l.Pump(w.toCore, connection.DefaultChunkBytes, c.now)
	b.in = append(get("3", 0), get("4", 1)...)
	b.client()
	_, toLeg, _ := w.core.Feed(w.toCore, nil, c.now)
	toLeg, _ = w.core.Pump(toLeg, connection.DefaultChunkBytes, c.now)
	l.Feed(toLeg, nil, c.now)
	b.in = get("5", 1)
	b.client()
	b.leg(1, 0)
	for b.client() {
	}
	refusal := func(id string) string {
		return `FF {"id":"` + id + `","ok":false,"error":{"code":"UNAVAILABLE","message":"` + noOwner + `","retryable":true}}`
	}
	for _, id := range []string{"1", "2", "3", "4"} {
		got := b.next()
		if want := refusal(id); id == "1" || id == "3" {
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		} else if !strings.HasPrefix(got, `02 {"id":"`+id+`","ok":true`) {
			t.Errorf("request %s is answered %s", id, got)
		}
	}
	if b.want(); !b.closed || len(b.in) == 0 {
		t.Errorf("closed %v, %d bytes not read", b.closed, len(b.in))
	}

	b = c.connect()
	b.call("kernel", "GetProcessCounts", `{}`)
	b.wires[1].core.Drain(c.now)
	b.send(request("n", "kernel", "GetProcessCounts", `{}`))
	if b.want(refusal("n")); !b.closed {
		t.Error("the connection stays open behind a refusal")
	}
}
