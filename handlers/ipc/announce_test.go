package ipc

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"trunkline/engine/runtime"
)

func TestAnnounce(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { r.StreamBufferEvents = 2 })
	p := r.connect()
	wants := func(want bool, typ string) {
		t.Helper()
		if got := r.svc.bus.Wants(typ); got != want {
			t.Errorf("%s is wanted: %v, want %v", typ, got, want)
		}
	}
	chunk := func(typ, payload, source string) string {
		return fmt.Sprintf(`03 {"id":"s","body":{"event_type":%q,"payload":%q,"timestamp_ms":%d,"source":%q}}`, typ, payload, r.now.Wall, source)
	}
	wants(false, "tool.done")
	r.svc.bus.Emit("tool.done", "tools", []byte(`{"n":0}`))
	p.send(request("s", "commbus", "Subscribe", `{"event_types":["tool.done"],"subscriber_id":"me"}`))
	wants(true, "tool.done")
	wants(false, "tool")
	payload := []byte(`{"n":1}`)
	r.svc.bus.Emit("tool.done", "tools", payload)
	copy(payload, "ruined!") // it was copied
	r.svc.bus.Emit("tool", "tools", []byte(`{}`))
	p.pump()
	p.want(chunk("tool.done", `{"n":1}`, "tools"), "")

	for n := range 5 { // three more than wait for a subscriber
		r.svc.bus.Emit("tool.done", "", fmt.Appendf(nil, "%d", n))
	}
	p.pump()
	p.want(chunk("tool.done", "0", ""), chunk("tool.done", "1", ""), chunk("commbus.gap", `{"dropped":3}`, "commbus"), "")

	long := strings.Repeat("t", 200) // longer than the room that is set aside for types
	p.send(request("l", "commbus", "Subscribe", `{"event_types":["`+long+`"],"subscriber_id":"me"}`))
	if p.out = nil; !r.svc.bus.Wants(long) {
		t.Error("a long type is not wanted")
	}
	r.svc.bus.Emit(long, "tools", []byte("{}"))
	p.pump()
	p.want(strings.Replace(chunk(long, "{}", "tools"), `"id":"s"`, `"id":"l"`, 1))
	p.s.Closed()
	wants(false, long)
	r.svc.bus.Emit(long, "tools", []byte("{}"))
	if st := r.svc.bus.Stats(); st.EventsPublished != 10 || st.DroppedEvents != 3 || st.BufferedBytes != 0 {
		t.Errorf("%+v", st)
	}
}

// TestAnnounceFromAnywhere: other goroutines announce while a connection subscribes and reads.
func TestAnnounceFromAnywhere(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.send(request("s", "commbus", "Subscribe", `{"event_types":["e"]}`))
	var all sync.WaitGroup
	const each = 200
	for range 4 {
		all.Go(func() {
			for range each {
				if r.svc.bus.Wants("e") {
					r.svc.bus.Emit("e", "x", []byte(`{"k":"v"}`))
				}
			}
		})
	}
	got := 0
	for got < 4*each {
		p.pump()
		for f := p.next(); f != ""; f = p.next() {
			if !strings.Contains(f, `"payload":"{\"k\":\"v\"}"`) {
				t.Fatal(f)
			}
			got++
		}
	}
	all.Wait()
}
