package fuzz

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// crowd is more processes than any server lists in passing.
const crowd = 2100

// crowded runs f in a bubble with a table of many processes.
func crowded(t *testing.T, f func(h *house, client *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, defaultSettings())
		defer h.svc.Runtime().Close()
		h.rest = synctest.Wait
		client := h.open()
		client.ask("kernel", "SetQuotaDefaults", object{{"quota", object{{"rate_limit_burst", crowd}, {"rate_limit_rpm", crowd}, {"rate_limit_rph", crowd}}}})
		for n := range crowd {
			pid := fmt.Sprintf("p%d", n)
			client.request("c", "kernel", "CreateProcess", object{{"pid", pid}, {"request_id", "r"}, {"session_id", "s"}, {"schedule", n%100 == 0}})
		}
		client.deliver(len(client.wire))
		f(h, client)
	})
}

// TestLargeListing: a listing that takes long keeps the order of replies, and the rest of the
// server goes on (kernel-ipc §2.5).
func TestLargeListing(t *testing.T) {
	crowded(t, func(h *house, client *peer) {
		other := h.open()
		client.request("s1", "commbus", "Subscribe", object{{"event_types", []any{"a"}}})
		client.request("l1", "kernel", "ListProcesses", object{{"state", "READY"}})
		client.request("l2", "kernel", "ListProcesses", object{{"limit", 3}})
		client.request("t", "kernel", "TerminateProcess", object{{"pid", "p0"}})
		client.request("l3", "kernel", "ListProcesses", object{{"state", "READY"}})
		client.request("u", "commbus", "Unsubscribe", object{{"stream_id", "s1"}})
		client.deliver(len(client.wire) - 10)
		if !client.held {
			t.Error("the listing was done in passing: the crowd is too small for this test")
		}
		other.ask("commbus", "Publish", object{{"event_type", "a"}})
		other.ask("kernel", "ListProcesses", object{{"user_id", "nobody"}})
		client.deliver(len(client.wire))
		for n := 0; client.held || client.conn.waiting(); n++ {
			if client.pump(); n > 20 {
				t.Fatal("the listings do not come to an end")
			}
		}
		other.drain()
	})
}

// TestLargeListingEnds: connections end while their listing is under way, in every way they can.
func TestLargeListingEnds(t *testing.T) {
	crowded(t, func(h *house, client *peer) {
		list := func(p *peer) {
			p.request("l", "kernel", "ListProcesses", object{})
			p.request("g", "kernel", "GetProcess", object{{"pid", "p1"}})
			p.deliver(len(p.wire))
		}
		gone, half, drained := h.open(), h.open(), h.open()
		list(gone)
		gone.close()
		list(half)
		half.halfClose()
		half.drain()
		if !half.sess.Load().Done {
			t.Error("the half-closed connection is not done")
		}
		half.close()
		list(drained)
		for _, p := range h.peers {
			p.sess.Drain(h.now())
		}
		h.model.drain()
		drained.drain()
		client.drain()
	})
}
