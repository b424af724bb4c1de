package ipc

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/codec/frame"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/obs"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit/memstore"
)

// timed returns how many requests of each method were timed.
func timed(rec *obs.Recorder) map[string]uint64 {
	counts := map[string]uint64{}
	for _, l := range rec.Latencies() {
		if l.Protocol == "ipc" {
			counts[l.Method] = l.Count
		}
	}
	return counts
}

// TestEveryAnswerIsTimedOnce: a request is in the histogram of its method exactly when it is
// answered, however its answer comes.
func TestEveryAnswerIsTimedOnce(t *testing.T) {
	rec := obs.NewRecorder(0, 1)
	r := newRig(t, func(c *Config, r *runtime.Config) { c.Recorder = rec })
	h, p := handlerOf(r), r.connect()
	k := func(method, body string) []byte { return request("i", "kernel", method, body) }
	var in []byte
	for range 3 {
		in = append(append(in, k("CreateProcess", `{"pid":"p"}`)...), k("GetProcess", `{"pid":"ghost"}`)...)
	}
	in = append(in, k("ListProcesses", `{}`)...)
	in = append(in, k("NoSuchMethod", `{}`)...)
	in = append(in, frame.Append(nil, frame.StreamEnd, nil, []byte("x"))...)
	p.send(in)
	p.send(request("s", "commbus", "Subscribe", `{"event_types":["e"]}`))
	p.send(request("u", "commbus", "Unsubscribe", `{"stream_id":"s"}`))
	p.send(request("q", "commbus", "Query", `{"query_type":"q"}`))
	if n, _ := p.s.(connection.Reporter).Report(); n != 1 || timed(rec)["commbus.Query"] != 0 {
		t.Errorf("%d in flight, %v", n, timed(rec))
	}
	h.answer(h.asked()[0], "{}")
	p.pump()
	if n, streams := h.s.(connection.Reporter).Report(); n != 0 || streams != 1 {
		t.Errorf("the handler has %d in flight and %d streams", n, streams)
	}
	p.s.Closed()
	want, got := map[string]uint64{}, timed(rec)
	for _, c := range r.svc.Stats().Calls {
		name := c.Service + "." + c.Method
		if c.Method == "" {
			name = obs.InvalidMethod
		}
		want[name] += uint64(c.Count)
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d are timed, %d were called", name, got[name], n)
		}
	}
	if len(got) != len(want) || got[obs.InvalidMethod] != 2 || got["kernel.GetProcess"] != 3 {
		t.Errorf("timed are %v", got)
	}
	for _, l := range rec.Latencies() {
		if wantErrors := map[string]uint64{"kernel.CreateProcess": 2, "kernel.GetProcess": 3, obs.InvalidMethod: 2}[l.Method]; l.Errors != wantErrors {
			t.Errorf("%s: %d errors, want %d", l.Method, l.Errors, wantErrors)
		}
	}
}

// TestAnswersBesideTheLoopAreTimed: a listing of a large table is timed when it leaves.
func TestAnswersBesideTheLoopAreTimed(t *testing.T) {
	rec := obs.NewRecorder(0, 1)
	r := newRig(t, func(c *Config, r *runtime.Config) { c.Recorder = rec })
	p := r.connect()
	p.digest(`{"digest":true}`)
	if got := timed(rec)["kernel.GetSystemStatus"]; got != 1 {
		t.Errorf("%d are timed", got)
	}
}

// TestTheWaitForTheDiskIsTimed: a reply that the journal holds has taken until it was released,
// also in the slow log.
func TestTheWaitForTheDiskIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := obs.NewRecorder(100*time.Millisecond, 8)
		g := &gate{pass: make(chan struct{}, 16)}
		g.pass <- struct{}{}
		r := newLimitedRig(
			t,
			func(c *Config, r *runtime.Config) { c.Recorder = rec },
			journal.Config{},
			memstore.New(memstore.Options{}),
			func(s journal.Store) journal.Store { g.Store = s; return g },
		)
		defer func() { close(g.pass); r.log.Close() }()
		slow, quick := r.connect(), r.connect()
		r.now = connection.Now()
		slow.send(append(request("1", "kernel", "CreateProcess", `{"pid":"p"}`), request("2", "commbus", "Publish", `{"event_type":"x"}`)...))
		quick.send(request("3", "commbus", "Publish", `{"event_type":"x"}`))
		if n, _ := slow.s.(connection.Reporter).Report(); n != 2 || timed(rec)["kernel.CreateProcess"] != 0 {
			t.Errorf("%d in flight, %v", n, timed(rec))
		}
		time.Sleep(3 * time.Second)
		g.pass <- struct{}{}
		if err := r.log.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		slow.pump()
		rows := rec.Latencies()
		find := func(method string) obs.Latency {
			for _, l := range rows {
				if l.Method == method {
					return l
				}
			}
			return obs.Latency{}
		}
		if l := find("kernel.CreateProcess"); l.Count != 1 || l.SumSeconds != 3 {
			t.Errorf("%+v", l)
		}
		if l := find("commbus.Publish"); l.Count != 2 || l.SumSeconds != 3 {
			t.Errorf("%+v", l)
		}
		var methods []string
		for _, e := range rec.Slow().Entries {
			if e.Seconds != 3 || e.Conn != "conn-1" || e.Peer != "test" {
				t.Errorf("%+v", e)
			}
			methods = append(methods, e.Method)
		}
		if got := strings.Join(methods, " "); got != "commbus.Publish kernel.CreateProcess" {
			t.Errorf("the slow log has %s", got)
		}
	})
}

// TestALostConnectionIsTimed: what its journal held was not answered, and counts until its end.
func TestALostConnectionIsTimed(t *testing.T) {
	rec := obs.NewRecorder(0, 1)
	g := &gate{pass: make(chan struct{}, 16)}
	g.pass <- struct{}{}
	r := newLimitedRig(
		t,
		func(c *Config, r *runtime.Config) { c.Recorder = rec },
		journal.Config{},
		memstore.New(memstore.Options{}),
		func(s journal.Store) journal.Store { g.Store = s; return g },
	)
	defer func() { close(g.pass); r.log.Close() }()
	p := r.connect()
	p.send(request("1", "kernel", "CreateProcess", `{"pid":"p"}`))
	p.s.Closed()
	if got := timed(rec); got["kernel.CreateProcess"] != 1 {
		t.Errorf("timed are %v", got)
	}
}

// TestWhatALostConnectionAskedIsTimed: every request that was counted is timed, also where the
// answer comes after the connection is gone, or waits in its mailbox.
func TestWhatALostConnectionAskedIsTimed(t *testing.T) {
	f := func(name string, lose func(r *rig, p *peer)) {
		t.Run(name, func(t *testing.T) {
			rec := obs.NewRecorder(0, 1)
			r := newRig(t, func(c *Config, r *runtime.Config) { c.Recorder = rec })
			p := r.connect()
			lose(r, p)
			p.s.Closed()
			got := timed(rec)
			for _, c := range r.svc.Stats().Calls {
				if name := c.Service + "." + c.Method; got[name] != uint64(c.Count) {
					t.Errorf("%s: %d are timed, %d were called", name, got[name], c.Count)
				}
			}
			for _, l := range rec.Latencies() {
				if want := map[bool]uint64{true: 1}[l.Method != "commbus.Subscribe"]; l.Errors != want {
					t.Errorf("%s has %d errors, want %d", l.Method, l.Errors, want)
				}
			}
		})
	}
	feed := func(r *rig, p *peer, in []byte) { p.s.Feed(in, nil, r.now) }
	subscribed := func(r *rig, p *peer) {
		feed(r, p, request("a", "commbus", "Subscribe", `{"event_types":["e"],"subscriber_id":"s"}`))
		feed(r, p, request("b", "commbus", "Subscribe", `{"event_types":["e"],"subscriber_id":"s2"}`))
		feed(r, p, request("u", "commbus", "Unsubscribe", `{"subscriber_id":"s"}`))
	}
	f("a digest beside the loop", func(r *rig, p *peer) {
		feed(r, p, request("d", "kernel", "GetSystemStatus", `{"digest":true}`))
	})
	f("an end of a stream that was not flushed", subscribed)
	f("an end of a stream in the mailbox", func(r *rig, p *peer) {
		subscribed(r, p)
		p.s.EOF(r.now)
	})
}
