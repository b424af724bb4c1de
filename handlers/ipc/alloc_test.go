//go:build !race

package ipc

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"trunkline/engine/connection"
	state "trunkline/engine/runtime"
	"trunkline/fuzz/kit/memstore"
)

// TestNoAllocs holds kernel-ipc §10: no heap allocation through the whole session, frame in to
// reply bytes out.
func TestNoAllocs(t *testing.T) {
	r := newRig(t, func(c *Config, r *state.Config) { r.MaxProcesses = 10000 })
	p := r.connect()
	for i := range 100 {
		r.now.Mono += 20e9
		p.call("c", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","request_id":"q","user_id":"u","session_id":"s"}`, i))
	}
	const runs = 200
	out := make([]byte, 0, 1<<20)
	f := func(name string, frames ...[]byte) {
		t.Helper()
		in := make([]byte, 0, 4096)
		for _, fr := range frames {
			in = append(in, fr...)
		}
		var failed bool
		got := testing.AllocsPerRun(runs, func() {
			r.now.Mono += 20e9
			var used int
			used, out, _ = p.s.Feed(in, out[:0], r.now)
			p.port.Rearm()
			out, _ = p.s.Pump(out, connection.DefaultChunkBytes, r.now)
			failed = failed || used != len(in)
		})
		if got != 0 || failed {
			t.Errorf("%s: %v allocations per message, want 0 (frames left: %v)", name, got, failed)
		}
	}
	kernelCall := func(method, body string) []byte { return request("id-1", "kernel", method, body) }
	f("GetProcess", kernelCall("GetProcess", `{"pid":"p1"}`))
	f("RecordUsage", kernelCall("RecordUsage", `{"pid":"p1","llm_calls":1,"tokens_in":120,"tokens_out":300}`))
	f("CheckQuota", kernelCall("CheckQuota", `{"pid":"p2"}`))
	f("CheckRateLimit", kernelCall("CheckRateLimit", `{"user_id":"u"}`))
	f("TransitionState", kernelCall("TransitionState", `{"pid":"p3","new_state":"RUNNING"}`),
		kernelCall("TransitionState", `{"pid":"p3","new_state":"READY"}`))
	f("GetNextRunnable", kernelCall("GetNextRunnable", `{}`))
	f("GetNextRunnable with start", kernelCall("GetNextRunnable", `{"start":true}`))
	f("CreateProcess and TerminateProcess refused", kernelCall("CreateProcess", `{"pid":"p1","request_id":"q","session_id":"s"}`),
		kernelCall("TerminateProcess", `{"pid":"ghost"}`))
	f("GetProcess of an unknown pid", kernelCall("GetProcess", `{"pid":"ghost"}`))
	f("GetProcessCounts", kernelCall("GetProcessCounts", `{}`))
	f("four kinds in turn", kernelCall("GetProcess", `{"pid":"p1"}`), kernelCall("CheckQuota", `{"pid":"p2"}`),
		kernelCall("GetProcessCounts", `{}`), kernelCall("GetProcess", `{"pid":"ghost"}`), kernelCall("GetProcess", `{"pid":"p1"}`))
	for _, bad := range fixedTextErrors() {
		f(bad.name, bad.frame)
	}
	f("Publish to nobody", request("i", "commbus", "Publish", `{"event_type":"a.b","payload":"{\"n\":1}","source":"t"}`))
}

// TestNoAllocsJournaled: a change that is written, its reply held and let go cost no allocation
// either, once the buffers have grown.
func TestNoAllocsJournaled(t *testing.T) {
	r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
	defer r.log.Close()
	p := r.connect()
	for i := range 10 {
		p.send(request("c", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d"}`, i)))
	}
	r.settled(p)
	p.out = p.out[:0]
	out := make([]byte, 0, 64<<10)
	f := func(name string, frames ...[]byte) {
		t.Helper()
		in := bytes.Repeat(bytes.Join(frames, nil), 100/len(frames))
		replies := true
		n := testing.AllocsPerRun(50, func() {
			r.now.Mono += 100e9
			_, out, _ = p.s.Feed(in, out[:0], r.now)
			for held := true; held; held = p.s.Load().Busy {
				p.port.Rearm()
				out, _ = p.s.Pump(out, connection.DefaultChunkBytes, r.now)
				runtime.Gosched()
			}
			replies = replies && len(out) > 1000
		})
		if n > 2 || !replies { // the store in memory copies the block, which the disk does not
			t.Errorf("%s: %v allocations for 100 requests, replies %v", name, n, replies)
		}
	}
	kernelCall := func(method, body string) []byte { return request("id-1", "kernel", method, body) }
	f("RecordUsage", kernelCall("RecordUsage", `{"pid":"p1","llm_calls":1,"tokens_in":120,"tokens_out":300}`))
	f("TransitionState", kernelCall("TransitionState", `{"pid":"p3","new_state":"RUNNING"}`),
		kernelCall("TransitionState", `{"pid":"p3","new_state":"READY"}`))
	f("CheckRateLimit", kernelCall("CheckRateLimit", `{"user_id":"u"}`))
	f("GetProcess", kernelCall("GetProcess", `{"pid":"p2"}`))
}

type namedFrame struct {
	name  string
	frame []byte
}

// fixedTextErrors are the error replies of kernel-ipc §8 whose text does not depend on the request.
func fixedTextErrors() []namedFrame {
	raw := func(payload string) []byte { return append([]byte{0, 0, 0, byte(1 + len(payload)), 1}, payload...) }
	k := func(method, body string) []byte { return request("x", "kernel", method, body) }
	return []namedFrame{
		{"empty payload", raw("")},
		{"never used byte", raw("\xc1")},
		{"bin", raw("\xc4\x00")},
		{"no id", raw("\x80")},
		{"no service", raw("\x81\xa2id\xa1x")},
		{"no method", raw("\x82\xa2id\xa1x\xa7service\xa1s")},
		{"no body", raw("\x83\xa2id\xa1x\xa7service\xa1s\xa6method\xa1m")},
		{"body is no map", raw("\x84\xa2id\xa1x\xa7service\xa1s\xa6method\xa1m\xa4body\x90")},
		{"missing pid", k("GetProcess", `{}`)},
		{"empty pid", k("GetProcess", `{"pid":""}`)},
		{"quota is no map", k("CreateProcess", `{"pid":"p","quota":"x"}`)},
		{"counter is a string", k("RecordUsage", `{"pid":"p1","tool_calls":"2"}`)},
		{"record is a number", k("CheckRateLimit", `{"user_id":"u","record":1}`)},
		{"payload is a map", request("x", "commbus", "Publish", `{"event_type":"a","payload":{}}`)},
		{"payload is empty", request("x", "commbus", "Publish", `{"event_type":"a","payload":""}`)},
		{"no event types", request("x", "commbus", "Subscribe", `{}`)},
		{"unknown service", request("x", "Kernel", "GetProcess", `{}`)},
		{"unknown method", request("x", "kernel", "getProcess", `{}`)},
	}
}

func TestNoAllocsPublishing(t *testing.T) {
	for _, subscribers := range []int{1, 100} {
		r := newRig(t)
		pub := r.connect()
		var subs []*peer
		for range subscribers {
			s := r.connect()
			s.send(request("s1", "commbus", "Subscribe", `{"event_types":["a.b"]}`))
			s.out = make([]byte, 0, 4096)
			subs = append(subs, s)
		}
		in := request("i", "commbus", "Publish", `{"event_type":"a.b","payload":"{\"n\":1}","source":"t"}`)
		out := make([]byte, 0, 4096)
		chunks := 0
		round := func() {
			_, out, _ = pub.s.Feed(in, out[:0], r.now)
			for _, s := range subs {
				s.port.Rearm()
				s.out, _ = s.s.Pump(s.out[:0], connection.DefaultChunkBytes, r.now)
				if len(s.out) > 0 {
					chunks++
				}
			}
		}
		round()
		if got := testing.AllocsPerRun(100, round); got != 0 {
			t.Errorf("publish to %d subscribers: %v allocations, want 0", subscribers, got)
		}
		if chunks < 100*subscribers {
			t.Errorf("%d chunks for %d subscribers", chunks, subscribers)
		}
	}
}
