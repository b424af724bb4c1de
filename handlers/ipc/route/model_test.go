package route

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"trunkline/codec/frame"
)

// process is what the model knows of one.
type process struct {
	exists, ended bool
	calls         int // llm_calls
}

// operation is a request of a client about a process of its own, or GetNextRunnable.
type operation struct {
	kind, pid string
}

// apply returns what the process becomes, and what the reply has to contain.
func (p process) apply(o operation) (after process, code string) {
	switch {
	case o.kind == "CreateProcess" && p.exists:
		return p, "FAILED_PRECONDITION"
	case o.kind == "CreateProcess":
		return process{exists: true}, ""
	case !p.exists:
		return p, "NOT_FOUND"
	case o.kind == "RecordUsage":
		p.calls++
	case o.kind == "TerminateProcess":
		p.ended = true
	}
	return p, ""
}

// user is a client that pipelines, and what it knows.
type user struct {
	w      *world
	name   string
	b      *board
	sent   []operation // without an answer, oldest first
	known  map[string]process
	unsure []operation // sent on a connection that ended before their answers
}

// world is a cluster with some users.
type world struct {
	t       *rapid.T
	c       *cluster
	users   []*user
	handed  map[string]bool // pids that GetNextRunnable gave
	unknown int             // GetNextRunnable without an answer
}

type replyFrame struct {
	ID    string
	OK    bool
	Body  map[string]any
	Error struct{ Code string }
}

// ask puts an operation into the pipeline.
func (u *user) ask(o operation) {
	if u.b == nil || u.b.closed {
		u.reconnect()
	}
	body := `{"pid":"` + o.pid + `","user_id":"` + o.pid + `","llm_calls":1}`
	if o.kind == "GetNextRunnable" {
		body = `{}`
	}
	u.sent = append(u.sent, o)
	u.b.in = append(u.b.in, request(o.kind, "kernel", o.kind, body)...)
}

// read compares the replies that came with the model.
func (u *user) read() {
	for {
		text := u.b.next()
		if text == "" {
			break
		}
		var f replyFrame
		if err := json.Unmarshal([]byte(text[3:]), &f); err != nil {
			u.w.t.Fatal(err)
		}
		if len(u.sent) == 0 || f.ID != u.sent[0].kind {
			u.w.t.Fatalf("%s got %s for %v", u.name, text, u.sent)
		}
		o := u.sent[0]
		u.sent = u.sent[1:]
		u.check(o, text, &f)
	}
	if u.b.closed {
		u.lose()
	}
}

func (u *user) check(o operation, text string, f *replyFrame) {
	if o.kind == "GetNextRunnable" {
		if f.OK {
			pid := f.Body["pid"].(string)
			if u.w.handed[pid] {
				u.w.t.Fatalf("%s was handed out twice", pid)
			}
			u.w.handed[pid] = true
		}
		return
	}
	after, code := u.known[o.pid].apply(o)
	if f.OK != (code == "") || f.Error.Code != code {
		u.w.t.Fatalf("%s of %s: got %s, want code %q", o.kind, o.pid, text, code)
	}
	u.known[o.pid] = after
	if f.OK {
		u.match(text, f.Body, after)
	}
}

// match compares what a reply shows.
func (u *user) match(text string, body map[string]any, p process) {
	calls := body["llm_calls"]
	if usage, ok := body["usage"].(map[string]any); ok {
		calls = usage["llm_calls"]
	}
	if fmt.Sprint(calls) != fmt.Sprint(p.calls) {
		u.w.t.Fatalf("got %s, want %d calls", text, p.calls)
	}
}

// lose takes the end of the connection: what has no answer may have happened.
func (u *user) lose() {
	u.unsure = append(u.unsure, u.sent...)
	for _, o := range u.sent {
		if o.kind == "GetNextRunnable" {
			u.w.unknown++
		}
	}
	u.sent = nil
}

// reconnect finds out what happened to the requests without an answer: of each process the first
// ones, in their order, and none twice.
func (u *user) reconnect() {
	u.b = u.w.c.connect()
	byPID := map[string][]operation{}
	for _, o := range u.unsure {
		byPID[o.pid] = append(byPID[o.pid], o)
	}
	delete(byPID, "")
	u.unsure = nil
	for pid, list := range byPID {
		got := u.b.call("kernel", "GetProcess", `{"pid":"`+pid+`"}`)
		p, found := u.known[pid], false
		for i := 0; i <= len(list) && !found; i++ {
			if found = p.is(got); !found && i < len(list) {
				p, _ = p.apply(list[i])
			}
		}
		if !found {
			u.w.t.Fatalf("%s is %v after %v, and was %+v", pid, got, list, u.known[pid])
		}
		u.known[pid] = p
	}
}

// is reports whether a reply of GetProcess shows the process.
func (p process) is(got map[string]any) bool {
	if !p.exists || got["code"] != nil {
		return !p.exists && got["code"] == "NOT_FOUND"
	}
	return (got["state"] == "TERMINATED") == p.ended && fmt.Sprint(got["usage"].(map[string]any)["llm_calls"]) == fmt.Sprint(p.calls)
}

var kinds = []string{"CreateProcess", "GetProcess", "RecordUsage", "RecordUsage", "TerminateProcess", "GetNextRunnable"}

// step does one thing: a request, some bytes of a leg, or the loss of a leg.
func (w *world) step() {
	u := w.users[rapid.IntRange(0, len(w.users)-1).Draw(w.t, "user")]
	partition := rapid.IntRange(0, len(w.c.cores)-1).Draw(w.t, "partition")
	switch what := rapid.IntRange(0, 9).Draw(w.t, "what"); {
	case what < 4:
		o := operation{kind: rapid.SampledFrom(kinds).Draw(w.t, "kind")}
		if o.kind != "GetNextRunnable" {
			o.pid = fmt.Sprint(u.name, rapid.IntRange(0, 5).Draw(w.t, "pid"))
		}
		u.ask(o)
	case u.b == nil || u.b.closed:
	case what < 6:
		u.b.client()
	case what < 9:
		u.b.leg(partition, rapid.SampledFrom([]int{0, 3, 40, 200}).Draw(w.t, "bytes"))
	default:
		if u.b.wires[partition] != nil && rapid.IntRange(0, 3).Draw(w.t, "lost") == 0 {
			if rapid.Bool().Draw(w.t, "partition lost") {
				u.b.s.legs[partition].lost()
			} else {
				u.b.unplug(partition)
			}
		}
	}
	if u.b != nil {
		u.read()
	}
}

// finish settles everything and compares the whole.
func (w *world) finish() {
	for _, u := range w.users {
		if u.b == nil {
			continue
		}
		u.b.settle()
		u.read()
		if u.b.closed {
			u.reconnect()
		}
		if len(u.sent) > 0 {
			w.t.Fatalf("%s has no answers to %v", u.name, u.sent)
		}
	}
	want := map[string]bool{} // READY, and not handed out
	total := 0
	for _, u := range w.users {
		for pid, p := range u.known {
			if p.exists {
				total++
			}
			if p.exists && !p.ended && !w.handed[pid] {
				want[pid] = true
			}
		}
	}
	b := w.c.connect()
	defer b.close()
	if got := b.call("kernel", "GetProcessCounts", `{}`)["total"]; fmt.Sprint(got) != fmt.Sprint(total) {
		w.t.Fatalf("%v processes, want %d", got, total)
	}
	if got := pidsOf(b.call("kernel", "ListProcesses", `{}`)); len(got) != total {
		w.t.Fatalf("%d processes in the list, want %d", len(got), total)
	}
	for {
		pid, ok := b.call("kernel", "GetNextRunnable", `{}`)["pid"].(string)
		if !ok {
			break
		}
		if !want[pid] {
			w.t.Fatalf("%s is in the queue, and is not READY or was handed out", pid)
		}
		delete(want, pid)
	}
	if len(want) > w.unknown {
		w.t.Fatalf("%v were never handed out; %d requests have no answer", want, w.unknown)
	}
	for _, u := range w.users {
		if u.b != nil {
			u.b.close()
		}
	}
}

// TestModel: clients that pipeline over legs that break see what one server would show them.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt, c: newCluster(quiet{t}, rapid.IntRange(2, 4).Draw(rt, "partitions"), nil), handed: map[string]bool{}}
		defer w.c.close()
		for i := range rapid.IntRange(1, 3).Draw(rt, "users") {
			w.users = append(w.users, &user{w: w, name: fmt.Sprint("u", i, "-"), known: map[string]process{}})
		}
		for range rapid.IntRange(10, 120).Draw(rt, "steps") {
			w.step()
		}
		w.finish()
	})
}

// quiet is a test whose clusters end with their round, not with the test.
type quiet struct{ testing.TB }

func (quiet) Cleanup(func()) {}

// FuzzClient feeds bytes of a client, in two parts. Whatever they are, the services stay in step
// with the session, and every whole frame is answered.
func FuzzClient(f *testing.F) {
	f.Add(request("1", "kernel", "GetProcess", `{"pid":"x"}`), 3)
	f.Add(append(request("s", "commbus", "Subscribe", `{"event_types":["a"],"subscriber_id":"w","ack":true}`), request("p", "commbus", "Publish", `{"event_type":"a"}`)...), 90)
	f.Add(append(request("h", "commbus", "RegisterQueryHandler", `{"query_types":["a"]}`), request("q", "commbus", "Query", `{"query_type":"a"}`)...), 10)
	f.Add(append(request("c", "kernel", "CreateProcess", `{"pid":"p","user_id":"u"}`), request("l", "kernel", "ListProcesses", `{"limit":1}`)...), 1)
	f.Add(append(request("n", "kernel", "GetNextRunnable", `{"start":true}`), request("q", "kernel", "SetQuotaDefaults", `{"quota":{"max_llm_calls":3}}`)...), 1)
	f.Add(append(request("u", "engine", "UpdateEnvelope", `{"envelope":{"envelope_id":"e"}}`), request("s", "kernel", "GetSystemStatus", `{"digest":true}`)...), 1)
	f.Add(request("u", "commbus", "Unsubscribe", `{"stream_id":"x"}`), 1)
	f.Add([]byte{0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 0xc0, 0, 0, 0, 0}, 5)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		c := newCluster(t, 3, nil)
		b := c.connect()
		defer b.close()
		cut = min(max(cut, 0), len(in))
		b.send(in[:cut])
		b.send(in[cut:])
		b.await()
		if b.s.end == failed {
			t.Fatal("a client made a session and its partitions disagree")
		}
		for rest := b.out; len(rest) > 0; {
			_, payload, n := frame.Split(rest, 5<<20)
			if n <= 0 || b.s.scan.Check(payload) != 0 {
				t.Fatalf("the client got %x", rest)
			}
			rest = rest[n:]
		}
		if !b.closed && (b.s.window.len() > 0 || b.s.op != nil || b.s.waiting > 0 || b.s.parked > 0) {
			t.Fatalf("%d requests have no answer", b.s.window.len())
		}
	})
}

// FuzzLeg feeds bytes of a partition to a session that waits for replies of each kind. They are
// taken or end the connection; the client gets whole frames.
func FuzzLeg(f *testing.F) {
	f.Add(respond(3), 2)
	f.Add(append(respond(3), respond(300)...), 9)
	f.Add([]byte{0, 0, 0, 5, 0x03, 0x80, 0x80, 0x80, 0x80}, 1)
	const query, list = "\x83\xa2id\xb0" + "0123456700000001", "\x83\xa2id\xb0" + "0123456700000002"
	f.Add(frame.Append(nil, frame.Response, []byte(query+okRest), []byte("\x80")), 0)
	f.Add(frame.Append(nil, frame.Error, []byte(query+errorRest), []byte("\x81\xa4code\xa1x")), 1)
	page := "\x83\xa9processes\x91\x80\xabnext_cursor\x07\xa7created\x91\x07"
	f.Add(frame.Append(nil, frame.Response, []byte(list+okRest), []byte(page)), 0)
	f.Add(frame.Append(nil, frame.Response, []byte(list+okRest), []byte(page)), 1)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		c := newCluster(t, 2, nil)
		b := c.connect()
		defer b.close()
		b.plug()
		copy(b.s.nonce[:], "01234567") // so that a corpus finds the calls
		b.in = append(request("1", "kernel", "GetProcess", `{"pid":"x"}`), request("q", "commbus", "Query", `{"query_type":"x"}`)...)
		b.in = append(append(b.in, request("2", "kernel", "GetProcess", `{"pid":"y"}`)...), request("l", "kernel", "ListProcesses", `{}`)...)
		b.client()
		b.client()
		b.drainLeg(0)
		b.drainLeg(1)
		cut = min(max(cut, 0), len(in))
		l := &b.s.legs[cut%2]
		used, _, _ := l.Feed(in[:cut], nil, c.now)
		l.Feed(in[used:], nil, c.now)
		b.s.legs[1-cut%2].Feed(respond(5), nil, c.now) // what is parked leaves
		b.client()
		for rest := b.out; len(rest) > 0; {
			_, _, n := frame.Split(rest, 5<<20)
			if n <= 0 {
				t.Fatalf("the client got %x", rest)
			}
			rest = rest[n:]
		}
	})
}
