package ipc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// longKey returns an idempotency key of the least length.
func longKey(name string) string { return name + strings.Repeat("-", minIdempotencyKey-len(name)) }

// withKey adds an idempotency key to a body in JSON, "" for none.
func withKey(body, key string) string {
	switch {
	case key == "":
		return body
	case body == "{}":
		return `{"idempotency_key":"` + key + `"}`
	}
	return body[:len(body)-1] + `,"idempotency_key":"` + key + `"}`
}

// keyedRequests has a request that succeeds for each method that changes something, in an order in
// which they do.
var keyedRequests = []struct{ service, method, body string }{
	{"kernel", "CreateProcess", `{"pid":"p","user_id":"u","schedule":false}`},
	{"kernel", "ScheduleProcess", `{"pid":"p"}`},
	{"kernel", "GetNextRunnable", `{"start":true}`},
	{"kernel", "TransitionState", `{"pid":"p","new_state":"READY"}`},
	{"kernel", "RecordUsage", `{"pid":"p","llm_calls":1,"tokens_in":2}`},
	{"kernel", "CheckRateLimit", `{"user_id":"u"}`},
	{"kernel", "SetQuotaDefaults", `{"quota":{"max_tool_calls":75}}`},
	{"engine", "CreateEnvelope", `{"raw_input":"hello","user_id":"u"}`},
	{"engine", "ExecutePipeline",
		`{"envelope":{"envelope_id":"x","raw_input":"a"},"pipeline_config":{"name":"c","agents":[{"name":"s","agent":"a"}]}}`},
	{"engine", "CloneEnvelope", `{"envelope":{"envelope_id":"x","raw_input":"a"}}`},
	{"orchestration", "InitializeSession",
		`{"process_id":"p","pipeline_config":{"name":"c","agents":[{"name":"s","agent":"a"}]},"envelope":{"raw_input":"a"}}`},
	{"orchestration", "GetNextInstruction", `{"process_id":"p"}`},
	{"orchestration", "ReportAgentResult", `{"process_id":"p","agent_name":"s","output":{"n":1}}`},
	{"kernel", "TransitionState", `{"pid":"p","new_state":"TERMINATED"}`},
	{"kernel", "TerminateProcess", `{"pid":"p"}`},
}

// stateOf returns the digest of all but the table of keys.
func stateOf(r *rig) uint64 {
	sum := r.svc.store.Digest()
	if r.svc.rt.Config.Journaled {
		sum -= r.svc.requests.Digest()
	}
	return sum
}

// TestEveryChangeTakesAnIdempotencyKey: of each method that changes something, a repetition gets
// the same bytes and changes nothing, with a journal and without.
func TestEveryChangeTakesAnIdempotencyKey(t *testing.T) {
	var missing []string
	for i := range methods {
		if m := &methods[i]; m.durability != None && m.name != "UpdateEnvelope" && !slices.ContainsFunc(keyedRequests,
			func(r struct{ service, method, body string }) bool { return r.method == m.name }) {
			missing = append(missing, m.name)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("%s is missing", missing)
	}
	journaled := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
	defer journaled.log.Close()
	inMemory := newRig(t)
	for _, r := range []*rig{inMemory, journaled.rig} {
		p := r.connect()
		call := func(service, method, body string) string {
			t.Helper()
			p.send(request("i", service, method, body))
			if r != inMemory {
				journaled.settled(p)
			}
			return p.next()
		}
		for i, q := range keyedRequests {
			body := withKey(q.body, longKey(fmt.Sprint("k", i)))
			first := call(q.service, q.method, body)
			if !strings.Contains(first, `"ok":true`) {
				t.Fatalf("%s: %s", q.method, first)
			}
			before := stateOf(r)
			if again := call(q.service, q.method, body); again != first {
				t.Errorf("%s: got  %s\nagain %s", q.method, first, again)
			}
			if stateOf(r) != before {
				t.Errorf("%s: a repetition changes the state", q.method)
			}
		}
	}
}

// TestUpdateEnvelopeTakesAnIdempotencyKey: the repetition of an old update does not undo a later
// one.
func TestUpdateEnvelopeTakesAnIdempotencyKey(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	made := p.call("1", "engine", "CreateEnvelope", `{"raw_input":"a"}`)
	_, rest, _ := strings.Cut(made, `"envelope_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	update := func(text, key string) string {
		return p.call("i", "engine", "UpdateEnvelope", withKey(`{"envelope":{"envelope_id":"`+id+`","raw_input":"`+text+`"}}`,
			longKey(key)))
	}
	first := update("first", "1")
	second := update("second", "2")
	digest := stateOf(r)
	if update("first", "1") != first || update("second", "2") != second || stateOf(r) != digest {
		t.Errorf("a repetition of %s gets something else, or changes the envelope", first)
	}
}

// TestIdempotencyKeys walks through what a key is and what it is kept for.
func TestIdempotencyKeys(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.call("c", "kernel", "CreateProcess", `{"pid":"p"}`)
	usage := func(n int) string {
		return fmt.Sprintf(`02 {"id":"i","ok":true,"body":{"llm_calls":%d,"tool_calls":0,"agent_hops":0,"tokens_in":0,"tokens_out":0}}`,
			n)
	}
	failed := func(code wire.Code, text string) string {
		return fmt.Sprintf(`FF {"id":"i","ok":false,"error":{"code":"%s","message":"%s"}}`, code, text)
	}
	f := func(method, body, want string) {
		t.Helper()
		if got := p.call("i", "kernel", method, body); got != want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", method, body, got, want)
		}
	}
	conflict := failed(wire.FailedPrecondition, "idempotency_key was used for another request")
	a := longKey("a")
	f("RecordUsage", withKey(`{"pid":"p","llm_calls":1}`, a), usage(1))
	f("RecordUsage", `{"pid":"p","llm_calls":1}`, usage(2))
	f("RecordUsage", `{"idempotency_key":null,"pid":"p","llm_calls":1}`, usage(3))
	f("RecordUsage", withKey(`{"pid":"p","llm_calls":1}`, a), usage(1))
	f("RecordUsage", withKey(`{"llm_calls":1,"pid":"p","other":[],"tool_calls":null}`, a), usage(1)) // what has no effect makes no other request
	f("RecordUsage", withKey(`{"pid":"p","llm_calls":2}`, a), conflict)
	f("RecordUsage", withKey(`{"pid":"p","tool_calls":1}`, a), conflict)
	f("RecordUsage", withKey(`{"pid":"q","llm_calls":1}`, a), conflict)
	f("TerminateProcess", withKey(`{"pid":"p"}`, a), conflict)

	// A refusal of the state is an answer; that of an invalid request is none.
	ghost := failed(wire.NotFound, "Process ghost not found")
	f("RecordUsage", withKey(`{"pid":"ghost"}`, longKey("b")), ghost)
	p.call("c", "kernel", "CreateProcess", `{"pid":"ghost"}`)
	f("RecordUsage", withKey(`{"pid":"ghost"}`, longKey("b")), ghost)
	f("RecordUsage", withKey(`{"pid":5}`, longKey("c")), failed(wire.InvalidArgument, "Missing required field: pid"))
	f("RecordUsage", withKey(`{"pid":"ghost"}`, longKey("c")), usage(0))

	// Two users may use one key. A decision of the limiter that may become another one is not kept.
	for _, user := range []string{"u1", "u2"} {
		for range 2 {
			if got := p.call("i", "kernel", "CheckRateLimit", withKey(`{"user_id":"`+user+`"}`, a)); !strings.Contains(got,
				`"current_count":1,`) {
				t.Errorf("the first request of %s: %s", user, got)
			}
		}
	}
	full := p.call("i", "kernel", "SetQuotaDefaults", `{"quota":{"rate_limit_burst":1}}`)
	limited := withKey(`{"user_id":"u1"}`, longKey("d"))
	if got := p.call("i", "kernel", "CheckRateLimit", limited); !strings.Contains(got, `"allowed":false`) {
		t.Fatalf("%s after %s", got, full)
	}
	r.now.Mono += int64(time.Minute)
	if got := p.call("i", "kernel", "CheckRateLimit", limited); !strings.Contains(got, `"allowed":true`) {
		t.Errorf("the refusal was kept: %s", got)
	}

	// What reads has no use for a key.
	if got := p.call("i", "kernel", "CheckQuota", `{"pid":"p","idempotency_key":5}`); !strings.Contains(got, `"ok":true`) {
		t.Error(got)
	}

	// After the window the key is free.
	r.now.Mono += int64(24*time.Hour) - int64(time.Minute) - 1
	f("RecordUsage", withKey(`{"pid":"p","llm_calls":1}`, a), usage(1))
	r.now.Mono++
	f("RecordUsage", withKey(`{"pid":"p","llm_calls":1}`, a), usage(4))
}

// TestIdempotencyKeyLimits: lengths at the limits and one beyond.
func TestIdempotencyKeyLimits(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.call("c", "kernel", "CreateProcess", `{"pid":"p"}`)
	f := func(key, want string) {
		t.Helper()
		if got := p.call("i", "kernel", "RecordUsage", `{"pid":"p","idempotency_key":`+key+`}`); !strings.Contains(got,
			want) {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
	text := func(n int) string { return `"` + strings.Repeat("k", n) + `"` }
	f(text(31), "idempotency_key must have 32 to 200 bytes, got 31")
	f(text(32), `"ok":true`)
	f(text(200), `"ok":true`)
	f(text(201), "idempotency_key must have 32 to 200 bytes, got 201")
	f(text(0), "idempotency_key must have 32 to 200 bytes, got 0")
	f("5", "idempotency_key must be a string")
	f(`{}`, "idempotency_key must be a string")
}

// TestIdempotencyTableIsBounded: at its limit the table refuses a new key, and changes nothing.
// What it has is neither dropped nor refused.
func TestIdempotencyTableIsBounded(t *testing.T) {
	f := func(name string, cfg limits, keys int) {
		r := newRig(t, cfg)
		p := r.connect()
		p.call("c", "kernel", "CreateProcess", `{"pid":"p"}`)
		call := func(i int) string {
			return p.call("i", "kernel", "RecordUsage", withKey(`{"pid":"p","llm_calls":1}`, longKey(fmt.Sprint("k", i))))
		}
		for i := range keys {
			if got := call(i); !strings.Contains(got, fmt.Sprintf(`"llm_calls":%d,`, i+1)) {
				t.Fatalf("%s: key %d: %s", name, i, got)
			}
		}
		want := `FF {"id":"i","ok":false,"error":{"code":"RESOURCE_EXHAUSTED","message":"Idempotency table is full; try again later","retryable":true}}`
		if got := call(keys); got != want {
			t.Errorf("%s: one more: %s", name, got)
		}
		if got := call(0); !strings.Contains(got, `"llm_calls":1,`) {
			t.Errorf("%s: an old one: %s", name, got)
		}
		if got := p.call("i", "kernel", "CheckQuota", `{"pid":"p"}`); !strings.Contains(got,
			fmt.Sprintf(`"llm_calls":%d,`, keys)) {
			t.Errorf("%s: a refused request has changed something: %s", name, got)
		}
		r.now.Mono += int64(24 * time.Hour)
		r.svc.rt.Sweep()
		if st := r.svc.Stats(); st.IdempotencyKeys != 0 || st.IdempotencyBytes != 0 {
			t.Errorf("%s: after the window: %d keys, %d bytes", name, st.IdempotencyKeys, st.IdempotencyBytes)
		}
		if got := call(keys); !strings.Contains(got, `"ok":true`) {
			t.Errorf("%s: after the window: %s", name, got)
		}
	}
	f("keys", func(c *Config, r *runtime.Config) { r.MaxIdempotencyKeys = 3 }, 3)
	f("bytes", func(c *Config, r *runtime.Config) { r.MaxIdempotencyBytes = 1 }, 1) // what is in flight is kept
}

// TestRepetitionsWaitForTheJournal: the answer to a repetition leaves when the first one may.
func TestRepetitionsWaitForTheJournal(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 16)}
	r := newGatedRig(t, g, 1)
	defer func() { close(g.pass); r.log.Close() }()
	p, q := r.connect(), r.connect()
	limited := request("i", "kernel", "CheckRateLimit", withKey(`{"user_id":"u"}`, longKey("k"))) // without a key it would not wait
	p.send(limited)
	q.send(limited)
	if len(p.out) > 0 || len(q.out) > 0 {
		t.Fatalf("left before they were safe: %q %q", p.out, q.out)
	}
	g.pass <- struct{}{}
	r.settled(p)
	q.pump()
	if first, again := p.next(), q.next(); first != again || !strings.Contains(first, `"current_count":1,`) {
		t.Errorf("got %s and %s", first, again)
	}
}

// TestConcurrentRepetitions: requests with one key on several event loops are executed once.
func TestConcurrentRepetitions(t *testing.T) {
	const loops, keys = 4, 200
	r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
	defer r.log.Close()
	p := r.connect()
	p.send(request("c", "kernel", "CreateProcess", `{"pid":"p"}`))
	var wg sync.WaitGroup
	answers := make([][]string, loops)
	for i := range loops {
		q := r.connect()
		wg.Go(func() {
			for k := range keys {
				q.send(request("i", "kernel", "RecordUsage", withKey(`{"pid":"p","llm_calls":1}`, longKey(fmt.Sprint("k", k)))))
			}
			r.settled(q)
			for range keys {
				answers[i] = append(answers[i], q.next())
			}
		})
	}
	wg.Wait()
	for i := range answers {
		if !slices.Equal(answers[i], answers[0]) {
			t.Errorf("loop %d got other answers", i)
		}
	}
	p.send(request("i", "kernel", "CheckQuota", `{"pid":"p"}`))
	r.settled(p)
	if p.next(); !strings.Contains(p.next(), fmt.Sprintf(`"llm_calls":%d,`, keys)) {
		t.Errorf("not each key counts once")
	}
}

// TestCrashKeepsTheChangeWithItsKey: from each prefix of the log a client that repeats all it has
// sent comes to the same state, although blocks are so small that records of one request would
// often be in two of them.
func TestCrashKeepsTheChangeWithItsKey(t *testing.T) {
	const sent = 40
	disk := memstore.New(memstore.Options{})
	r := newLimitedRig(t, nil, journal.Config{MaxBlockBytes: 512}, disk, nil)
	all := func(r *journaledRig) (replies []string) {
		p := r.connect()
		var in []byte
		for i := range sent {
			key := longKey(fmt.Sprint("k", i))
			for _, q := range [][2]string{
				{"CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u%d","request_id":"r","session_id":"s"}`, i, i)},
				{"RecordUsage", fmt.Sprintf(`{"pid":"p%d","llm_calls":1}`, i/2)},
				{"TransitionState", fmt.Sprintf(`{"pid":"p%d","new_state":"TERMINATED"}`, i)},
			} {
				in = append(in, request("i", "kernel", q[0], withKey(q[1], key+q[0]))...)
			}
		}
		p.send(in)
		r.settled(p)
		for range 3 * sent {
			replies = append(replies, p.next())
		}
		return replies
	}
	want := all(r)
	digest := r.svc.kernel.Digest()
	if err := r.log.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range len(disk.Firsts()) {
		prefix := memstore.New(memstore.Options{})
		st, err := prefix.Open()
		if err != nil {
			t.Fatal(err)
		}
		for i, first := range disk.Firsts()[:n] {
			if err := st.WriteBlock(first, disk.Block(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		again := reopened(t, prefix, r.now)
		if got := all(again); !slices.Equal(got, want) {
			t.Fatalf("after %d blocks: got  %s\nwant %s", n, got, want)
		}
		if got := again.svc.kernel.Digest(); got != digest {
			t.Fatalf("after %d blocks the state differs", n)
		}
		if err := again.log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnknownOutcomeIsRefused: where only the beginning of a request is in the log, nothing is
// executed again.
func TestUnknownOutcomeIsRefused(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	body := withKey(`{"pid":"p"}`, longKey("k"))
	turn := newTurn(r.svc)
	turn.begin(p.s.(*session), nil, r.now)
	create := r.svc.routes.find([]byte("kernel"), []byte("CreateProcess"))
	turn.fields = new([maxFields]mpack.Value)
	turn.scan.ParseFields(encodeJSON(body), 0, create.want, turn.fields[:])
	key := turn.requestKey(create, []byte(longKey("k")))
	if o, _ := r.svc.requests.Begin(r.now.Mono, key, turn.fingerprint(create), nil); o != idem.Started {
		t.Fatal(o)
	}
	r.settled(p)
	if err := r.log.Close(); err != nil {
		t.Fatal(err)
	}
	r = newJournaledRig(t, disk, nil)
	defer r.log.Close()
	p = r.connect()
	for range 2 {
		p.send(request("i", "kernel", "CreateProcess", body))
		r.settled(p)
		want := `FF {"id":"i","ok":false,"error":{"code":"FAILED_PRECONDITION","message":"Outcome of the first request with this idempotency_key is unknown"}}`
		if got := p.next(); got != want {
			t.Error(got)
		}
	}
	var pcb kernel.PCB
	if r.svc.kernel.Get([]byte("p"), nil, &pcb) == kernel.OK {
		t.Error("the request was executed")
	}
}

// TestCrashedRequestKeepsItsKey: a handler that crashed may have changed something.
func TestCrashedRequestKeepsItsKey(t *testing.T) {
	r := newRig(t)
	runs := 0
	row := *r.svc.routes.find([]byte("kernel"), []byte("RecordUsage"))
	row.handle = func(*turn) wire.Code { runs++; panic("broken") }
	for i, m := range r.svc.routes.rows {
		if m != nil && m.index == row.index {
			r.svc.routes.rows[i] = &row
		}
	}
	p := r.connect()
	for range 2 {
		got := p.call("i", "kernel", "RecordUsage", withKey(`{"pid":"p"}`, longKey("k")))
		if got != `FF {"id":"i","ok":false,"error":{"code":"INTERNAL","message":"Internal error"}}` {
			t.Error(got)
		}
	}
	if runs != 1 {
		t.Errorf("it was executed %d times", runs)
	}
}

// reopened opens a service on a disk at some time.
func reopened(t *testing.T, disk *memstore.Disk, now connection.Instant) *journaledRig {
	t.Helper()
	r := newRig(t, func(c *Config, r *runtime.Config) { r.Journaled = true })
	r.now = now
	kept, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(kept, journal.Config{OnDurable: r.svc.rt.Durable})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.svc.rt.Store.Recover(log, store.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	return &journaledRig{r, log}
}

// TestIdempotencyModel: a service whose clients repeat requests, some of them with another content,
// and that restarts, is one that gets each request once and knows no keys.
func TestIdempotencyModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type answer struct {
			request, reply string
			at             int64
		}
		disk := memstore.New(memstore.Options{})
		r := newJournaledRig(t, disk, nil)
		defer func() { r.log.Close() }()
		twin := newRig(t)
		p, q := r.connect(), twin.connect()
		known := map[string]answer{}
		pid, one := rapid.SampledFrom([]string{"p1", "p2", "p3"}), rapid.IntRange(1, 3)
		bodies := map[string]func() string{
			"CreateProcess": func() string {
				return fmt.Sprintf(`{"pid":"%s","request_id":"r","session_id":"s"}`, pid.Draw(rt, "pid"))
			},
			"RecordUsage": func() string {
				return fmt.Sprintf(`{"pid":"%s","llm_calls":%d}`, pid.Draw(rt, "pid"), one.Draw(rt, "n"))
			},
			"TerminateProcess": func() string { return fmt.Sprintf(`{"pid":"%s"}`, pid.Draw(rt, "pid")) },
			"TransitionState": func() string {
				return fmt.Sprintf(`{"pid":"%s","new_state":"%s"}`, pid.Draw(rt, "pid"),
					rapid.SampledFrom([]string{"RUNNING", "READY", "TERMINATED", "x"}).Draw(rt, "state"))
			},
			"GetNextRunnable":  func() string { return `{"start":true}` },
			"SetQuotaDefaults": func() string { return fmt.Sprintf(`{"quota":{"max_llm_calls":%d}}`, one.Draw(rt, "n")) },
			"CheckQuota":       func() string { return fmt.Sprintf(`{"pid":"%s"}`, pid.Draw(rt, "pid")) },
		}
		names := make([]string, 0, len(bodies))
		for name := range bodies {
			names = append(names, name)
		}
		slices.Sort(names)
		call := func(method, body string) string {
			p.send(request("i", "kernel", method, body))
			r.settled(p)
			return p.next()
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 15).Draw(rt, "step") {
			case 0:
				if err := r.log.Close(); err != nil {
					rt.Fatal(err)
				}
				r = reopened(t, disk, r.now)
				p = r.connect()
			case 1:
				hours := rapid.IntRange(1, 25).Draw(rt, "hours")
				r.now.Mono += int64(hours) * int64(time.Hour)
				twin.now = r.now
			case 2:
				if err := r.svc.rt.Store.Snapshot(); err != nil {
					rt.Fatal(err)
				}
			default:
				r.now.Mono += int64(time.Minute) // so that the rate limiter takes all
				twin.now = r.now
				method := rapid.SampledFrom(names).Draw(rt, "method")
				body := bodies[method]()
				key := rapid.SampledFrom([]string{"", longKey("a"), longKey("b"), longKey("c")}).Draw(rt, "key")
				got, want := call(method, withKey(body, key)), ""
				a, repeated := known[key]
				if repeated = repeated && key != "" && method != "CheckQuota" && r.now.Mono < a.at+int64(24*time.Hour); repeated {
					if want = a.reply; a.request != method+body {
						want = `FF {"id":"i","ok":false,"error":{"code":"FAILED_PRECONDITION","message":"idempotency_key was used for another request"}}`
					}
				} else {
					want = q.call("i", "kernel", method, body)
					if key != "" && method != "CheckQuota" && !strings.Contains(want, `"INVALID_ARGUMENT"`) {
						known[key] = answer{method + body, want, r.now.Mono}
					}
				}
				if got != want {
					rt.Fatalf("%s %s with key %q:\ngot  %s\nwant %s", method, body, key, got, want)
				}
			}
		}
		if got, want := call("ListProcesses", `{}`), q.call("i", "kernel", "ListProcesses", `{}`); got != want {
			rt.Fatalf("the processes are %s\nwant %s", got, want)
		}
	})
}
