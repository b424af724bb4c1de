package route

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc"
)

// frames returns all frames that came.
func (b *board) frames() (list []string) {
	for f := b.next(); f != ""; f = b.next() {
		list = append(list, f)
	}
	return list
}

// TestSubscribe: one stream for the client, whatever partition an event comes from, live when the
// next request is answered.
func TestSubscribe(t *testing.T) {
	c := newCluster(t, 3, nil)
	sub, pub := c.connect(), c.connect()
	var types []string
	for i := range 3 {
		types = append(types, c.home(placement.Topic, i, "t"))
	}
	list := `"` + strings.Join(types, `","`) + `","process.created"`
	sub.send(request("s1", "commbus", "Subscribe", `{"event_types":[`+list+`],"subscriber_id":"w"}`),
		request("p", "kernel", "GetProcess", `{"pid":"ghost"}`))
	if got := sub.frames(); len(got) != 1 || !strings.Contains(got[0], "ghost") {
		t.Fatalf("frames without an event: %v", got)
	}
	for i, typ := range types {
		pub.send(request("e", "commbus", "Publish", `{"event_type":"`+typ+`","payload":"1"}`), request("f", "commbus", "Publish", `{"event_type":"`+typ+`","payload":"2"}`))
		pub.want(`02 {"id":"e","ok":true,"body":{"success":true,"delivered":1}}`, `02 {"id":"f","ok":true,"body":{"success":true,"delivered":1}}`)
		sub.settle()
		sub.want(fmt.Sprintf(`03 {"id":"s1","body":{"event_type":"%s","payload":"1","timestamp_ms":1700000000000,"source":""}}`, typ),
			fmt.Sprintf(`03 {"id":"s1","body":{"event_type":"%s","payload":"2","timestamp_ms":1700000000000,"source":""}}`, typ))
		pub.create(i, "p", "")
		sub.settle()
		if got := sub.frames(); len(got) != 1 || !strings.Contains(got[0], "process.created") {
			t.Errorf("a process of partition %d: %v", i, got)
		}
	}
	if got := pub.call("kernel", "GetSystemStatus", `{}`)["commbus"].(map[string]any)["active_subscribers"]; fmt.Sprint(got) != "1" {
		t.Errorf("%v subscribers, want 1", got)
	}
	sub.send(request("u", "commbus", "Unsubscribe", `{"stream_id":"s1"}`), request("v", "commbus", "Unsubscribe", `{"stream_id":"s1"}`))
	sub.settle()
	got := sub.frames()
	slices.Sort(got)
	want := []string{`02 {"id":"u","ok":true,"body":{"success":true,"ended":1}}`, `02 {"id":"v","ok":true,"body":{"success":true,"ended":0}}`, `04 {"id":"s1"}`}
	if !slices.Equal(got, want) {
		t.Errorf("after Unsubscribe: %v", got)
	}
	pub.send(request("e", "commbus", "Publish", `{"event_type":"`+types[1]+`"}`))
	pub.want(`02 {"id":"e","ok":true,"body":{"success":true,"delivered":0}}`)
	if len(sub.s.calls) != 0 || len(sub.s.streams) != 0 {
		t.Errorf("%d calls and %d streams are left", len(sub.s.calls), len(sub.s.streams))
	}
}

// TestSubscribeAck: one acknowledgement, with the name of partition 0, by which Unsubscribe finds
// the stream.
func TestSubscribeAck(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	b.send(request("s", "commbus", "Subscribe", `{"event_types":["a"],"ack":true}`))
	ack := b.next()
	name := regexp.MustCompile(`ipc-sub-[0-9a-f]{32}`).FindString(ack)
	if !strings.HasPrefix(ack, `03 {"id":"s","body":{"event_type":"commbus.subscribed"`) || name == "" || b.next() != "" {
		t.Fatalf("acknowledged with %s", ack)
	}
	b.send(request("u", "commbus", "Unsubscribe", `{"subscriber_id":"`+name+`"}`))
	b.want(`04 {"id":"s"}`, `02 {"id":"u","ok":true,"body":{"success":true,"ended":1}}`)
	b.send(request("t", "commbus", "Subscribe", `{"event_types":[]}`), request("u", "commbus", "Subscribe", `{"event_types":["a"],"ack":1}`))
	b.want(`FF {"id":"t","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"event_types is required (non-empty array)"}}`,
		`FF {"id":"u","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"ack must be a boolean"}}`)
	b.send(request("x", "commbus", "Subscribe", `{"event_types":["a"]}`), request("x", "commbus", "Subscribe", `{"event_types":["b"]}`))
	b.want(`FF {"id":"x","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"Stream id already in use"}}`)
}

// TestReplacedStream: a subscriber that comes again on its connection ends its older stream, once.
func TestReplacedStream(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	b.send(request("s1", "commbus", "Subscribe", `{"event_types":["a"],"subscriber_id":"w"}`),
		request("s2", "commbus", "Subscribe", `{"event_types":["a"],"subscriber_id":"w"}`))
	b.want(`04 {"id":"s1"}`)
	b.send(request("s3", "commbus", "Subscribe", `{"event_types":[""],"subscriber_id":"w"}`))
	b.want(`FF {"id":"s3","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"event_types[0] must be a non-empty string"}}`)
	b.send(request("p", "commbus", "Publish", `{"event_type":"a","payload":"1"}`))
	got := b.frames()
	slices.Sort(got)
	if len(got) != 2 || !strings.Contains(got[0], `"delivered":1`) || !strings.HasPrefix(got[1], `03 {"id":"s2"`) {
		t.Errorf("after a refused replacement: %v", got)
	}
}

// TestEvictedStream: the oldest unnamed stream gives way, once, when there are too many.
func TestEvictedStream(t *testing.T) {
	c := newCluster(t, 3, func(_ *Config, core *ipc.Config, _ *runtime.Config) { core.MaxStreamsPerConnection = 2 })
	b := c.connect()
	for i := range 3 {
		b.send(request(fmt.Sprint("s", i), "commbus", "Subscribe", `{"event_types":["a"]}`))
	}
	b.want(`FF {"id":"s0","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"Stream evicted: too many streams","retryable":true}}`)
	b.send(request("p", "commbus", "Publish", `{"event_type":"a"}`))
	got := b.frames()
	if len(got) != 3 || len(b.s.streams) != 2 {
		t.Errorf("%d streams, frames %v", len(b.s.streams), got)
	}
}

// TestHandlers: a type has one handler in the cluster; commands and queries find it from anywhere.
func TestHandlers(t *testing.T) {
	c := newCluster(t, 3, nil)
	h, other := c.connect(), c.connect()
	h.send(request("h", "commbus", "RegisterQueryHandler", `{"query_types":["sum","max"],"handler_id":"calc"}`))
	h.want(`03 {"id":"h","body":{"registered":["sum","max"],"handler_id":"calc"}}`)
	other.send(request("r", "commbus", "RegisterQueryHandler", `{"query_types":["max"]}`))
	other.want(`FF {"id":"r","ok":false,"error":{"code":"FAILED_PRECONDITION","message":"Query handler already registered: max"}}`)
	for i, typ := range []string{"sum", "max"} {
		q := fmt.Sprint("q", i)
		other.send(request(q, "commbus", "Query", `{"query_type":"`+typ+`","payload":"[1,2]","timeout_ms":20000}`),
			request("after", "kernel", "GetProcess", `{"pid":"ghost"}`))
		if got := other.frames(); len(got) != 1 || !strings.Contains(got[0], `"after"`) {
			t.Errorf("a request behind a query: %v", got)
		}
		h.settle()
		chunk := h.next()
		id := regexp.MustCompile(`"query_id":"([^"]*)"`).FindStringSubmatch(chunk)
		if id == nil {
			t.Fatalf("the handler got %s", chunk)
		}
		h.send(request("a", "commbus", "Reply", `{"query_id":"`+id[1]+`","result":"3"}`))
		h.want(`02 {"id":"a","ok":true,"body":{"success":true,"delivered":true}}`)
		other.settle()
		other.want(`02 {"id":"` + q + `","ok":true,"body":{"success":true,"result":3,"error":""}}`)
	}
	h.send(request("a", "commbus", "Reply", `{"query_id":"ghost"}`))
	h.want(`02 {"id":"a","ok":true,"body":{"success":true,"delivered":false}}`)

	h.send(request("c", "commbus", "RegisterCommandHandler", `{"command_types":["run"]}`))
	h.next()
	other.send(request("s", "commbus", "Send", `{"command_type":"run","payload":"{}"}`))
	other.want(`02 {"id":"s","ok":true,"body":{"success":true,"error":""}}`)
	h.settle()
	if got := h.next(); !strings.Contains(got, `"command_type":"run"`) {
		t.Errorf("the handler got %s", got)
	}
	h.close()
	other.send(request("q", "commbus", "Query", `{"query_type":"sum"}`))
	other.want(`FF {"id":"q","ok":false,"error":{"code":"NOT_FOUND","message":"No handler registered for query type: sum"}}`)
}

// TestRegisterUndone: a handler that partition 1 refuses is taken back at partition 0.
func TestRegisterUndone(t *testing.T) {
	c := newCluster(t, 3, nil)
	direct := &board{c: c}
	s := c.cores[1].Open(c.port())
	defer s.Closed()
	_, direct.out, _ = s.Feed(request("d", "commbus", "RegisterCommandHandler", `{"command_types":["run"]}`), nil, c.now)
	b := c.connect()
	b.send(request("c", "commbus", "RegisterCommandHandler", `{"command_types":["run"]}`))
	b.want(`FF {"id":"c","ok":false,"error":{"code":"FAILED_PRECONDITION","message":"Command handler already registered: run"}}`)
	if len(b.s.calls) != 0 || len(b.s.streams) != 0 {
		t.Errorf("%d calls and %d streams are left", len(b.s.calls), len(b.s.streams))
	}
	for i, svc := range c.cores {
		other := svc.Open(c.port())
		_, out, _ := other.Feed(request("d", "commbus", "RegisterCommandHandler", `{"command_types":["run"]}`), nil, c.now)
		other.Closed()
		if got := (&board{c: c, out: out}).next(); strings.HasPrefix(got, "FF") != (i == 1) {
			t.Errorf("partition %d: %s", i, got)
		}
	}
}

// TestCancelQuery: Unsubscribe cancels a pending query by the client's identifier.
func TestCancelQuery(t *testing.T) {
	c := newCluster(t, 3, nil)
	h, b := c.connect(), c.connect()
	h.send(request("h", "commbus", "RegisterQueryHandler", `{"query_types":["slow"]}`))
	b.send(request("q", "commbus", "Query", `{"query_type":"slow","timeout_ms":30000}`), request("u", "commbus", "Unsubscribe", `{"stream_id":"q"}`))
	got := b.frames()
	slices.Sort(got)
	want := []string{`02 {"id":"u","ok":true,"body":{"success":true,"ended":1}}`, `FF {"id":"q","ok":false,"error":{"code":"CANCELLED","message":"Query cancelled: slow"}}`}
	if !slices.Equal(got, want) {
		t.Errorf("frames %v", got)
	}
	if b.s.queries != 0 || len(b.s.calls) != 0 {
		t.Errorf("%d queries, %d calls are left", b.s.queries, len(b.s.calls))
	}
}

// TestEndOfInput: streams end at once and without a frame, what was asked is answered, then the
// session is done.
func TestEndOfInput(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	b.send(request("s", "commbus", "Subscribe", `{"event_types":["a"]}`))
	b.in = append(request("1", "kernel", "GetProcess", `{"pid":"x"}`), request("2", "kernel", "GetProcessCounts", `{}`)...)
	b.client()
	b.client()
	b.s.EOF(c.now)
	if b.s.Load().Done {
		t.Error("done before the answers")
	}
	b.settle()
	b.settle()
	if got := b.frames(); len(got) != 2 || !b.s.Load().Done {
		t.Errorf("done %v, frames %v", b.s.Load().Done, got)
	}
}

// TestDrain: streams end with STREAM_END, queries are cancelled, later requests refused.
func TestDrain(t *testing.T) {
	c := newCluster(t, 3, nil)
	h, b := c.connect(), c.connect()
	h.send(request("h", "commbus", "RegisterQueryHandler", `{"query_types":["slow"]}`))
	b.send(request("s", "commbus", "Subscribe", `{"event_types":["a"]}`), request("q", "commbus", "Query", `{"query_type":"slow"}`))
	b.s.Drain(c.now)
	b.send(request("x", "kernel", "GetProcess", `{"pid":"x"}`), request("y", "kernel", "Ghost", `{}`))
	got := b.frames()
	slices.Sort(got)
	want := []string{`04 {"id":"s"}`, `FF {"id":"q","ok":false,"error":{"code":"CANCELLED","message":"Query cancelled: slow"}}`,
		`FF {"id":"x","ok":false,"error":{"code":"UNAVAILABLE","message":"Server is shutting down"}}`,
		`FF {"id":"y","ok":false,"error":{"code":"UNAVAILABLE","message":"Server is shutting down"}}`}
	if !slices.Equal(got, want) || !b.s.Load().Done {
		t.Errorf("done %v, frames %v", b.s.Load().Done, got)
	}
}
