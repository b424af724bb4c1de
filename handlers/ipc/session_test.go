package ipc

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/runtime"
)

// TestCrashIsIsolated takes the bus away under a request in the middle of several (kernel-ipc §2.3,
// D11).
func TestCrashIsIsolated(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.call("c", "kernel", "CreateProcess", `{"pid":"p1","request_id":"q","user_id":"u","session_id":"s"}`)
	b := r.svc.bus
	r.svc.bus = nil
	in := request("a", "kernel", "RecordUsage", `{"pid":"p1","llm_calls":1}`)
	in = append(in, request("b", "commbus", "Publish", `{"event_type":"e"}`)...)
	in = append(in, request("c", "kernel", "RecordUsage", `{"pid":"p1","llm_calls":1}`)...)
	p.send(in)
	reply := func(id string, calls int) string {
		return fmt.Sprintf(`02 {"id":%q,"ok":true,"body":{"llm_calls":%d,"tool_calls":0,"agent_hops":0,"tokens_in":0,"tokens_out":0}}`, id, calls)
	}
	p.want(reply("a", 1), `FF {"id":"b","ok":false,"error":{"code":"INTERNAL","message":"Internal error"}}`, reply("c", 2), "")
	r.svc.bus = b
	p.send(request("d", "commbus", "Publish", `{"event_type":"e"}`))
	p.want(`02 {"id":"d","ok":true,"body":{"success":true,"delivered":0}}`, "")
}

// TestCrashWhileOpeningLeavesNoStream: the ERROR is the last frame of that id, and the id is free
// again.
func TestCrashWhileOpeningLeavesNoStream(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	turn := newTurn(r.svc)
	s := p.s.(*session)
	turn.begin(s, nil, r.now)
	st := &liveStream{}
	turn.id = []byte("s1")
	turn.describe(st)
	st.bus = r.svc.bus.Subscribe(p.port, []string{"e"}, st.overhead())
	turn.open(st, nil, nil)
	func() {
		defer turn.recoverPanic(new(connection.Verdict))
		panic("while opening")
	}()
	p.out = turn.out
	p.want(`FF {"id":"s1","ok":false,"error":{"code":"INTERNAL","message":"Internal error"}}`)
	if len(s.streams) != 0 || r.svc.bus.Stats().ActiveSubscribers != 0 {
		t.Errorf("%d streams, %d subscribers are left", len(s.streams), r.svc.bus.Stats().ActiveSubscribers)
	}
}

// TestDrainIsEachSessionsOwn: what a connection sent before its own drain is executed, whatever
// others got (§2.7).
func TestDrainIsEachSessionsOwn(t *testing.T) {
	r := newRig(t)
	idle, busy := r.connect(), r.connect()
	idle.s.Drain(r.now)
	if got := busy.call("a", "kernel", "GetProcessCounts", `{}`); !strings.HasPrefix(got, "02") {
		t.Errorf("before its own drain: %s", got)
	}
	busy.s.Drain(r.now)
	busy.pump()
	busy.send(request("b", "kernel", "GetProcessCounts", `{}`))
	busy.want(`FF {"id":"b","ok":false,"error":{"code":"UNAVAILABLE","message":"Server is shutting down"}}`)
	if !idle.s.Load().Done || !busy.s.Load().Done {
		t.Error("drained connections with nothing left are not done")
	}
}

// handlerOf makes a connection that answers queries of type "q".
func handlerOf(r *rig) *peer {
	h := r.connect()
	h.send(request("h", "commbus", "RegisterQueryHandler", `{"query_types":["q"]}`))
	h.next()
	return h
}

// asked returns the ids of the queries p was given.
func (p *peer) asked() (ids []string) {
	p.pump()
	for chunk := p.next(); chunk != ""; chunk = p.next() {
		_, rest, _ := strings.Cut(chunk, `"query_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		ids = append(ids, id)
	}
	return ids
}

// answer replies to a query.
func (p *peer) answer(id, result string) {
	p.rig.t.Helper()
	p.send(request("r", "commbus", "Reply", fmt.Sprintf(`{"query_id":"%s","result":%q}`, id, result)))
	p.want(`02 {"id":"r","ok":true,"body":{"success":true,"delivered":true}}`)
}

// TestUnreadAnswersStopTheReading: answers that no one takes count as unsent output, and are
// bounded (§2.5).
func TestUnreadAnswersStopTheReading(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { c.UnsentBytes = 1000; c.AnswerBufferBytes = 3000 })
	h, caller := handlerOf(r), r.connect()
	ask := func(id string) connection.Verdict {
		_, _, v := caller.s.Feed(request(id, "commbus", "Query", `{"query_type":"q"}`), nil, r.now)
		return v
	}
	for _, id := range []string{"1", "2", "3"} {
		if v := ask(id); v != connection.More {
			t.Fatalf("query %s: verdict %d", id, v)
		}
	}
	result := `"` + strings.Repeat("x", 1400) + `"`
	ids := h.asked()
	h.answer(ids[0], result)
	if v := ask("4"); v != connection.Blocked {
		t.Errorf("with more than UnsentBytes in the mailbox: verdict %d, want Blocked", v)
	}
	h.answer(ids[1], result)
	h.answer(ids[2], result)
	caller.pump()
	for _, want := range []string{`02 {"id":"1"`, `02 {"id":"2"`, `FF {"id":"3","ok":false,"error":{"code":"RESOURCE_EXHAUSTED"`} {
		if got := caller.next(); !strings.HasPrefix(got, want) {
			t.Errorf("got %.80s, want %s", got, want)
		}
	}
	if v := ask("4"); v != connection.More {
		t.Errorf("after the answers were taken: verdict %d, want More", v)
	}
}

// TestResubscribingInOneBurst: streams that are replaced have nothing to send and do not crowd out
// the new one (§4.18).
func TestResubscribingInOneBurst(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { c.MaxStreamsPerConnection = 1 })
	p := r.connect()
	var in []byte
	for i := range 50 {
		in = append(in, request(fmt.Sprint(i), "commbus", "Subscribe", `{"event_types":["e"],"subscriber_id":"me"}`)...)
	}
	p.send(in)
	for i := range 49 {
		p.want(fmt.Sprintf(`04 {"id":"%d"}`, i))
	}
	p.want("")
	if got := r.svc.bus.Stats().ActiveSubscribers; got != 1 {
		t.Errorf("%d subscribers, want 1", got)
	}
}

// TestPatternsOfAConnection: one connection leaves room for the patterns of others (§2.6).
func TestPatternsOfAConnection(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { r.MaxEventPatterns = 5; r.MaxEventPatternsPerConnection = 3 })
	greedy, other := r.connect(), r.connect()
	greedy.send(request("1", "commbus", "Subscribe", `{"event_patterns":["a.*","b.*"]}`))
	greedy.send(request("2", "commbus", "Subscribe", `{"event_patterns":["c.*"]}`))
	greedy.send(request("3", "commbus", "Subscribe", `{"event_patterns":["d.*"]}`))
	greedy.want(`FF {"id":"3","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"Too many patterns on this connection","retryable":true}}`, "")
	other.send(request("4", "commbus", "Subscribe", `{"event_patterns":["d.*","e.*"]}`))
	other.send(request("5", "commbus", "Subscribe", `{"event_patterns":["f.*"]}`))
	other.want(`FF {"id":"5","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"Too many patterns in streams; try again","retryable":true}}`, "")
	greedy.s.Closed()
	other.send(request("6", "commbus", "Subscribe", `{"event_patterns":["f.*"]}`))
	other.want("")
}

// TestFirstChunkKeepsTheFrameBound: a stream whose first chunk may not be sent is not opened
// (§2.1).
func TestFirstChunkKeepsTheFrameBound(t *testing.T) {
	// Control characters take six bytes each in the acknowledgement's JSON.
	body := `{"ack":true,"event_types":["` + strings.Repeat(`\u0001`, 900) + `"]}`
	r := newRig(t, func(c *Config, r *runtime.Config) { r.MaxFrameBytes = 4096 })
	p := r.connect()
	got := p.call("s", "commbus", "Subscribe", body)
	if !strings.HasPrefix(got, `FF {"id":"s","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"Response too large: `) {
		t.Errorf("got %.120s", got)
	}
	if r.svc.bus.Stats().ActiveSubscribers != 0 {
		t.Error("a refused subscription is live")
	}
}

// TestRefusedRegistrationEvictsNobody (§3.2: a failed request changes nothing).
func TestRefusedRegistrationEvictsNobody(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { c.MaxStreamsPerConnection = 1 })
	h, p := handlerOf(r), r.connect()
	_ = h
	p.send(request("s", "commbus", "Subscribe", `{"event_types":["e"]}`))
	p.send(request("x", "commbus", "RegisterQueryHandler", `{"query_types":["q"]}`))
	p.want(`FF {"id":"x","ok":false,"error":{"code":"FAILED_PRECONDITION","message":"Query handler already registered: q"}}`, "")
	p.send(request("y", "commbus", "RegisterQueryHandler", `{"query_types":["other"],"handler_id":"me"}`))
	p.want(`FF {"id":"s","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"Stream evicted: too many streams","retryable":true}}`,
		`03 {"id":"y","body":{"registered":["other"],"handler_id":"me"}}`)
}

// TestListingOfAClosedConnectionStops: it must not keep others from listing (§2.6).
func TestListingOfAClosedConnectionStops(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	l := &listing{svc: r.svc, s: p.s.(*session), id: []byte("l")}
	for i := range 3 {
		r.now.Mono += 20e9
		p.call("c", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d"}`, i))
	}
	l.walk()
	if l.count != 3 {
		t.Fatalf("listed %d of 3", l.count)
	}
	p.s.Closed()
	l.count = 0
	l.walk()
	if l.count != 0 {
		t.Errorf("went on for %d processes after the connection was gone", l.count)
	}
}

// TestPanicBesideTheLoopIsInternal: the connection gets an answer, and the server goes on (D11).
func TestPanicBesideTheLoopIsInternal(t *testing.T) {
	r := newRig(t)
	got := r.svc.recoverPanic([]byte("x"), func() []byte { panic("broken") })
	want := appendErrorFrame(nil, []byte("x"), wire.Internal, "Internal error", mpack.Extras{})
	if string(got) != string(want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestPooledTurnsKeepLittle: a turn that saw a large input, or made a large error, keeps neither.
func TestPooledTurnsKeepLittle(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	turn := newTurn(r.svc)
	turn.begin(p.s.(*session), nil, r.now)
	long := strings.Repeat("x", 1<<20)
	turn.run(request("a", "kernel", "TransitionState", `{"pid":"p","new_state":"`+long+`"}`))
	turn.end()
	if cap(turn.msg) > keepText || turn.reading.slots[0].payload != nil || turn.reading.slots[0].fields[1].Data != nil {
		t.Errorf("kept %d bytes of text, payload %v", cap(turn.msg), turn.reading.slots[0].payload != nil)
	}
}

// TestSharesOfATurn: at the limit everything is taken, one more waits for the next turn (§2.5).
func TestSharesOfATurn(t *testing.T) {
	f := func(why string, cfg limits, frames int, wantTaken int) {
		t.Helper()
		r := newRig(t, cfg)
		p := r.connect()
		one := frame.Append(nil, frame.StreamEnd, mpack.AppendStreamEnd(nil, []byte("x")), nil)
		in := []byte(strings.Repeat(string(one), frames))
		used, _, v := p.s.Feed(in, nil, r.now)
		want := connection.More
		if wantTaken < frames {
			want = connection.Yield
		}
		if used != wantTaken*len(one) || v != want {
			t.Errorf("%s: took %d of %d frames, verdict %d", why, used/len(one), frames, v)
		}
	}
	f("frames at the limit", nil, 256, 256)
	f("one more", nil, 257, 256)
	f("input at the limit", func(c *Config, r *runtime.Config) { c.TurnBytes = 45 }, 5, 5) // frames of nine bytes
	f("one more", func(c *Config, r *runtime.Config) { c.TurnBytes = 45 }, 6, 5)
	f("output over the limit", func(c *Config, r *runtime.Config) { c.UnsentBytes = 100 }, 3, 2)
}
