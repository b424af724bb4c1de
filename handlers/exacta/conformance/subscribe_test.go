package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// subscribe sends a subscribe with these fields beside project_id, and returns the ack.
func (c *client) subscribe(fields string) *reply {
	c.t.Helper()
	return c.message(c.subscription(`"` + c.project + `"` + fields))
}

func (c *client) subscription(rest string) string {
	return `{"ipc_version":"1.0","type":"subscribe","request_id":"` + c.id() + `","sent_at":"2026-01-15T00:00:00Z","project_id":` + rest + `}`
}

// stream returns the numbers of the next n events.
func (c *client) stream(n int) (out []int) {
	c.t.Helper()
	for range n {
		m := c.next()
		if m.Type != "event" {
			c.t.Fatalf("got %s", m.line)
		}
		out = append(out, m.Stream)
	}
	return out
}

// TestSubscribe3_5 has the table of answers.
func TestSubscribe3_5(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		c.joined, c.logs = true, true
		c.ask("ExtractIntent", `{"user_input":"create n.txt"}`)
		last := c.streams[c.project]
		ack := func(r *reply, code string) *reply {
			t.Helper()
			if r.end.Type != "ack" || r.end.Request == nil || r.end.Correlation != "" {
				t.Errorf("got %s", r.end.line)
			}
			return r.is(code)
		}
		ok := func(replayed int) string {
			return fmt.Sprintf(`{"stream":"exacta:event","project_id":"%s","session_id":"3bc566cf-3909-5250-87c2-645a45a2357d","state":"Idle","oldest_stream_seq":1,"last_stream_seq":%d,"replayed":%d}`, c.project, last, replayed)
		}
		ack(c.subscribe(""), ok(0))
		ack(c.subscribe(`,"mode":"project","after_stream_seq":null,"unknown":1`), ok(0))
		for after := 0; after <= last; after++ { // oldest − 1 up to last
			ack(c.subscribe(`,"after_stream_seq":`+strconv.Itoa(after)), ok(last-after))
			for i, got := range c.stream(last - after) {
				if got != after+1+i {
					t.Errorf("after %d: got %d", after, got)
				}
			}
		}
		ack(c.subscribe(`,"after_stream_seq":`+strconv.Itoa(last+1)), "IPC-007 ")
		ack(c.subscribe(`,"after_stream_seq":1000000000000`), "IPC-007 ")
		ack(c.subscribe(`,"session_id":"`+noID+`"`), "ST-003 ")
		ack(c.subscribe(`,"session_id":"3BC566CF-3909-5250-87c2-645a45a2357d"`), ok(0))
		ack(c.message(c.subscription(`"`+noID+`"`)), "ST-003 ")
		for _, bad := range []string{`5`, `"x"`, `null`} {
			ack(c.message(c.subscription(bad)), "IPC-009 project_id:")
		}
		for field, values := range map[string][]string{"mode": {`"all"`, `5`, `null`}, "after_stream_seq": {`-1`, `1.5`, `"1"`, `true`}, "session_id": {`5`, `"x"`},
			"correlation_id": {`5`, `"x"`}, "window": {`-1`, `4097`, `"1"`, `1.5`}} {
			for _, v := range values {
				ack(c.subscribe(`,"`+field+`":`+v), "IPC-009 "+field+":")
			}
		}
		ack(c.subscribe(`,"correlation_id":"`+noID+`","after_seq":-1`), "IPC-009 after_seq:")
		ack(c.subscribe(`,"window":4096`), ok(0))
		ack(c.subscribe(`,"window":0`), ok(0))
		// a fault of the envelope is a response
		for change, code := range map[string]string{`"1.0"`: "IPC-002 ", `"sent_at"`: "IPC-001 missing:sent_at", `"request_id"`: "IPC-001 missing:request_id"} {
			to := map[string]string{`"1.0"`: `"2.0"`}[change]
			if to == "" {
				to = `"x"`
			}
			if r := c.message(strings.Replace(c.subscription(`"`+c.project+`"`), change, to, 1)).is(code); r.end.Type != "response" {
				t.Errorf("got %s", r.end.line)
			}
		}
		// acks are never answered
		for _, line := range []string{`{"type":"ack"}`, `{"ipc_version":"1.0","type":"ack","project_id":"` + c.project + `","stream_seq":1}`, `{"ipc_version":"9","type":"ack","stream_seq":"x"}`} {
			c.sends(line)
		}
		ack(c.subscribe(""), ok(0))
	})
}

// TestWindow3_5 has a window: at most so many events are in flight.
func TestWindow3_5(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		c.ask("ExtractIntent", `{"user_input":"create n.txt"}`)
		c.joined, c.logs = true, true
		last := c.streams[c.project]
		c.subscribe(`,"window":2,"after_stream_seq":0`).is(`{…"replayed":` + strconv.Itoa(last) + `}`)
		if got := c.stream(2); got[1] != 2 {
			t.Errorf("got %v", got)
		}
		received := func(seq int) {
			c.sends(`{"ipc_version":"1.0","type":"ack","project_id":"` + c.project + `","stream_seq":` + strconv.Itoa(seq) + `}`)
		}
		// the window is full: the next line is the answer of another subscribe
		c.subscribe(`,"mode":"nonsense"`).want("", "IPC-009 mode:")
		received(1)
		if got := c.stream(1); got[0] != 3 {
			t.Errorf("got %v", got)
		}
		received(1) // a repeated one changes nothing
		c.subscribe(`,"mode":"nonsense"`).want("", "IPC-009 mode:")
		received(3)
		if got := c.stream(1); got[0] != 4 {
			t.Errorf("got %v", got)
		}
	})
}

// TestCorrelation3_5 has a subscription of one correlation.
func TestCorrelation3_5(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		r := c.ask("ExtractIntent", `{"user_input":"create n.txt"}`)
		flow := r.end.Correlation
		c.ask("Build", "")
		c.joined, c.partial, c.logs = true, true, true
		f := func(fields string, n int) {
			t.Helper()
			c.subscribe(`,"correlation_id":"` + flow + `"` + fields).is(`{…"replayed":` + strconv.Itoa(n) + `}`)
			for range n {
				if m := c.next(); m.Correlation != flow {
					t.Errorf("got %s", m.line)
				}
			}
		}
		f(`,"after_seq":0`, 3)
		f(`,"after_seq":2`, 1)
		f(`,"after_seq":3`, 0)
		f(``, 0)
		c.subscribe(`,"correlation_id":"` + flow + `","after_seq":4`).is("IPC-007 ")
	})
}

// TestTwoConnections2_4 has what a connection gets: the events of its own requests, and those of
// the projects that it subscribed to, each once.
func TestTwoConnections2_4(t *testing.T) {
	over(t, func(t *testing.T, via *carrier) {
		one := open(t, via, inMake...)
		two := one.server.connect()
		two.project, two.joined, two.partial = one.project, true, true
		none := one.server.connect()
		none.project, none.joined, none.partial = one.project, true, true
		// two did not open the project: it gets its own events only
		one.intent("create n.txt")
		r := two.ask("ExtractIntent", `{"user_input":"create m.txt"}`)
		if r.shorts() != "Idle→ExtractingIntent ExtractIntent; ExtractingIntent→Idle IntentExtracted" {
			t.Errorf("events %s", r.shorts())
		}
		for range 2 { // one gets them too, once
			if m := one.next(); m.Request == nil || *m.Request != *r.end.Request {
				t.Errorf("got %s", m.line)
			}
		}
		two.subscribe("").is("{…}")
		one.intent("create n.txt")
		for range 2 {
			if m := two.next(); m.Event != "StateChanged" || !strings.HasPrefix(*m.Request, "00000001") {
				t.Errorf("got %s", m.line)
			}
		}
		two.intent("create m.txt")
		two.subscribe(`,"mode":"none"`).is("{…}")
		one.until("ExtractingIntent→Idle IntentExtracted")
		one.intent("create n.txt")
		if r = two.ask("ExtractIntent", `{"user_input":"create m.txt"}`); r.shorts() != "Idle→ExtractingIntent ExtractIntent; ExtractingIntent→Idle IntentExtracted" {
			t.Errorf("events %s", r.shorts())
		}
		one.until("ExtractingIntent→Idle IntentExtracted")
		// a request that runs is joined over two connections, and answered with the same bytes
		one.server.write("slow", "")
		build := one.begin("Build", "")
		one.until("build 0/1")
		two.sends(two.line(build, "Build", ""))
		two.sends(two.line(build, "Build", `{"configuration":"Release"}`))
		two.message(two.line(build, "Build", `{"configuration":"Release"}`)).is("IPC-006 ")
		two.message("{nope").is("IPC-006 ") // the first one of the two
		two.message("{nope").is("IPC-001 ")
		two.next()
		one.server.remove("slow")
		first, second := one.await(build).want("build 1/1", `{"exit_code":0,…}`), two.await(build)
		if first.end.line != second.end.line {
			t.Errorf("got %s and %s", first.end.line, second.end.line)
		}
		// and again from a third connection, without events
		if again := none.message(none.line(build, "Build", "")).want("", "{…}"); again.end.line != first.end.line {
			t.Errorf("got %s", again.end.line)
		}
		none.message(none.line(build, "Build", `{"configuration":"Release"}`)).want("", "IPC-006 ")
		// a connection that goes away cancels nothing
		one.server.write("slow", "")
		none.project = one.project
		plan := none.approved("create n.txt; build")
		execute := none.begin("ExecutePlan", `{"plan_id":"`+plan+`"}`)
		none.await(execute)
		none.conn.shut()
		one.until("build 0/1")
		one.server.remove("slow")
		one.until("Executing→Completed ExecutionComplete")
		// what it missed is fetched by repeating the request
		line := none.line(execute, "ExecutePlan", `{"plan_id":"`+plan+`"}`)
		four := one.server.connect()
		four.message(line).want("", `{"execution_id":"…"}`)
		// CloseProject closes it for all
		one.ask("CloseProject", "").is(`{"closed":true}`)
		two.ask("ValidatePlan", `{"plan_id":"`+plan+`"}`).want("", "ST-003 ")
		two.subscribe("").is("ST-003 ")
	}, func(c *carrier) bool { return c.many })
}

// TestReconnect2_5 goes on from the last event after a connection was lost, without a gap or an
// event twice.
func TestReconnect2_5(t *testing.T) {
	over(t, func(t *testing.T, via *carrier) {
		one := open(t, via, inMake...)
		last := one.streams[one.project]
		one.server.write("slow", "")
		one.executes("create n.txt; build; create m.txt")
		one.conn.shut()
		two := one.server.connect()
		two.project, two.joined, two.logs = one.project, true, true
		two.subscribe(`,"after_stream_seq":` + strconv.Itoa(last) + `,"session_id":"3bc566cf-3909-5250-87c2-645a45a2357d"`).is("{…}")
		one.server.remove("slow")
		for seen := last; ; seen++ {
			m := two.next()
			if m.Stream != seen+1 {
				t.Fatalf("behind %d: got %s", seen, m.line)
			}
			if m.short() == "Executing→Completed ExecutionComplete" {
				break
			}
		}
	}, func(c *carrier) bool { return c.many })
}
