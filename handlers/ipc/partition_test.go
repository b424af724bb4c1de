package ipc

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/runtime"
)

// TestRouting: the routes follow from the to lines of the method table.
func TestRouting(t *testing.T) {
	r := NewRouting()
	f := func(method, key string, to Destination, kind placement.Kind) {
		t.Helper()
		service, name, _ := strings.Cut(method, ".")
		route := r.Find([]byte(service), []byte(name))
		switch {
		case route == nil:
			t.Errorf("%s has no route", method)
		case route.To != to || route.Kind != kind || len(route.Key) != min(len(key), 1) || key != "" && route.Key[0].Name != key:
			t.Errorf("%s: %+v", method, *route)
		}
	}
	f("kernel.CreateProcess", "pid", ToKey, placement.Process)
	f("orchestration.GetSessionState", "process_id", ToKey, placement.Process)
	f("kernel.CheckRateLimit", "user_id", ToKey, placement.User)
	f("commbus.Publish", "event_type", ToKey, placement.Topic)
	f("commbus.Send", "command_type", ToKey, placement.Topic)
	f("commbus.Reply", "query_id", ToKey, placement.Query)
	f("engine.ExecutePipeline", "", ToEnvelope, 0)
	f("engine.CreateEnvelope", "", ToAny, 0)
	f("kernel.GetQuotaDefaults", "", ToFirst, 0)
	f("kernel.ListProcesses", "", ToSeveral, 0)
	if r.Find([]byte("kernel"), []byte("getProcess")) != nil || r.Find(nil, nil) != nil {
		t.Error("there is a route without a method")
	}
}

// TestOwnNames: what a partition names itself, its own requests find again.
func TestOwnNames(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { r.Partition = 2; r.Partitions = 5 })
	keys, _ := placement.NewKeyspace(5)
	p := r.connect()
	for range 20 {
		got := p.call("1", "engine", "CreateEnvelope", `{}`)
		_, rest, _ := strings.Cut(got, `"envelope_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		if at := keys.Partition(placement.Process, id); at != 2 {
			t.Errorf("%s is at partition %d", id, at)
		}
	}
	p.call("h", "commbus", "RegisterQueryHandler", `{"query_types":["q"]}`)
	for i := range 20 {
		p.send(request(fmt.Sprint(i), "commbus", "Query", `{"query_type":"q"}`))
		_, rest, _ := strings.Cut(p.next(), `"query_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		if at := keys.Partition(placement.Query, id); id == "" || at != 2 {
			t.Errorf("%q is at partition %d", id, at)
		}
	}
}

// TestCreatedOfNodes: nodes get the creation sequences with a list.
func TestCreatedOfNodes(t *testing.T) {
	p := newRig(t).connect()
	p.send(request("1", "kernel", "CreateProcess", `{"pid":"a","user_id":"u"}`))
	p.send(request("2", "kernel", "CreateProcess", `{"pid":"b","user_id":"u"}`))
	p.next()
	p.next()
	if got := p.call("l", "kernel", "ListProcesses", `{"created":true,"limit":1}`); !strings.HasSuffix(got, `],"next_cursor":1,"created":[1]}}`) {
		t.Error(got)
	}
	if got := p.call("l", "kernel", "ListProcesses", `{"created":true}`); !strings.HasSuffix(got, `],"created":[1,2]}}`) {
		t.Error(got)
	}
	p.send(request("e", "kernel", "ListProcesses", `{"created":1}`))
	p.want(`FF {"id":"e","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"created must be a boolean"}}`)
}
