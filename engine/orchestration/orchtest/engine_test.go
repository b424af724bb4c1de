package orchtest

import (
	"testing"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// TestCreateEnvelope is envelope §4.5.
func TestCreateEnvelope(t *testing.T) {
	k := newTalk(t)
	want := nested("", obj{"envelope_id": generated("env_"), "received_at": stamp(k.now), "created_at": stamp(k.now)}, nestedMembers)
	k.want(k.create(orchestration.CreateArgs{}), want)
	k.want(k.create(orchestration.CreateArgs{RequestID: []byte{}, UserID: []byte{}, SessionID: []byte{}, RawInput: []byte{}}), want)
	given := orchestration.CreateArgs{
		RawInput: []byte("trace login"), RequestID: []byte("r"), UserID: []byte("u"), SessionID: []byte("s"),
		StageOrder: pack(nil, arr{"plan", "act"}), Metadata: pack(nil, obj{"k": arr{1, rawMsg{0xcd, 0, 1}}}),
	}
	got := k.create(given)
	k.want(got, with(nested("", obj{"envelope_id": generated("env_"), "received_at": stamp(k.now), "created_at": stamp(k.now)}, nestedMembers, obj{
		"raw_input": "trace login", "request_id": "r", "user_id": "u", "session_id": "s", "stage_order": arr{"plan", "act"}, "current_stage": "plan",
		"metadata": obj{"k": arr{1, 1}},
	})))
	k.has(k.create(orchestration.CreateArgs{StageOrder: pack(nil, arr{}), Metadata: pack(nil, obj{})}), obj{"pipeline.current_stage": "start", "audit.metadata": obj{}})
	for _, wrong := range []arr{{1}, {"a", nil}, {"a", ""}, {arr{}}} {
		k.refuse(k.create(orchestration.CreateArgs{StageOrder: pack(nil, wrong)}), wire.InvalidArgument, "stage_order must be an array of strings")
	}
}

// TestIDsAreNew: an id that the store has already is made again (envelope §3.7).
func TestIDsAreNew(t *testing.T) {
	n := 0
	ids := []string{"00000000000000aa", "00000000000000bb", "00000000000000cc", "00000000000000dd"}
	k := newTalk(t, func(c *orchestration.Config) {
		c.NewID = func(dst []byte) []byte {
			n++
			return append(dst, ids[min(n/5, 3)]...)
		}
	})
	seen := map[any]bool{}
	for range 3 {
		body := k.body(k.create(orchestration.CreateArgs{}))
		id, _ := at(body, "identity.envelope_id")
		if seen[id] {
			t.Errorf("%s was given twice", id)
		}
		seen[id] = true
	}
}

// storedID creates an envelope in the store and returns its id.
func (k *talk) storedID() string {
	k.t.Helper()
	id, _ := at(k.body(k.create(orchestration.CreateArgs{})), "identity.envelope_id")
	return id.(string)
}

// TestUpdateEnvelope is envelope §4.7: the whole is replaced, in the shape it comes in.
func TestUpdateEnvelope(t *testing.T) {
	k := newTalk(t)
	id := k.storedID()
	k.want(k.update(flat(id, obj{"x": 1, "outputs": obj{"a": obj{}}})), received(flat(id, obj{"x": 1, "outputs": obj{"a": obj{}}}), stamp(k.now)).m)
	k.want(k.update(flat(id)), received(flat(id), stamp(k.now)).m)
	k.want(k.update(nested(id, obj{"iteration": 2})), received(nested(id, obj{"iteration": 2}), stamp(k.now)).m)
	k.want(k.update(jsonText(nested(id, obj{"raw_input": "\"é\n"}))), received(nested(id, obj{"raw_input": "\"é\n"}), stamp(k.now)).m)
	k.refuse(k.update(absent{}), wire.InvalidArgument, "Missing required field: envelope")
	k.refuse(k.update(flat("other")), wire.NotFound, "Envelope other not found")
	k.refuse(k.update(flat("other")), wire.NotFound, "Envelope other not found")
	k.refuse(k.update(nested("env_0")), wire.NotFound, "Envelope env_0 not found")
	k.refuse(k.update(flat("")), wire.NotFound, "Envelope  not found")
	for _, text := range []string{"", "{", "[]", "5", "null", `{"envelope_id":"a"} x`} {
		k.invalid(k.update(text), "")
	}
}

// TestCloneEnvelope is envelope §4.9: equal but for the id, and stored under it.
func TestCloneEnvelope(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		env := make("mine", obj{"terminated": true, "terminal_reason": "completed", "outputs": obj{"a": obj{"b": 0.5}}, "completed_at": "2025-12-10T10:00Z"})
		want := received(env, stamp(k.now))
		want.set("envelope_id", generated("env_"))
		got := k.clone(env)
		k.want(got, want.m)
		id, _ := at(k.body(got), path("envelope_id"))
		k.has(k.clone(jsonText(env)), obj{"outputs": obj{"a": obj{"b": 0.5}}, path("envelope_id"): generated("env_")})
		k.body(k.update(make(id.(string))))
		k.refuse(k.update(make("mine")), wire.NotFound, "Envelope mine not found")
		k.refuse(k.clone(absent{}), wire.InvalidArgument, "Missing required field: envelope")
	})
}

// TestExecutePipeline is envelope §4.8: a session under the envelope's id, and its first
// instruction.
func TestExecutePipeline(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		body := k.runs(k.execute(make("e"), line(2)), "a1")
		k.runs(k.next("e"), "a1")
		k.has(k.state("e"), obj{"process_id": "e", "envelope": body["envelope"]})
		k.refuse(k.update(make("e")), wire.NotFound, "Envelope e not found")
		k.unchanged("e", func() {
			k.refuse(k.execute(make("e"), line(1)), wire.InvalidArgument, "Session already exists for process: e (use force=true to replace)")
		})
		k.runs(k.execute(jsonText(make("t")), jsonText(line(2))), "a1")
		k.terminates(k.execute(make("over", obj{"llm_call_count": 100}), line(2)), "MAX_LLM_CALLS_EXCEEDED", "Bounds exceeded: MAX_LLM_CALLS_EXCEEDED")
		k.terminates(k.execute(make("done", obj{"terminated": true, "terminal_reason": "completed"}), line(2)), "COMPLETED", endedBefore)
		k.has(k.execute(make("wait", obj{"interrupt_pending": true}), line(2)), obj{"kind": "WAIT_INTERRUPT"})
		active := k.e.Active()
		k.refuse(k.execute(make("z", obj{"current_stage": "zzz"}), line(2)), wire.InvalidArgument, "Stage not found in pipeline: zzz")
		k.refuse(k.execute(absent{}, line(2)), wire.InvalidArgument, "Missing required field: envelope")
		k.refuse(k.next("z"), wire.NotFound, "Unknown process: z")
		if n := k.e.Active(); n != active {
			t.Errorf("refused calls made %d sessions", n-active)
		}
	})
	k := newTalk(t)
	k.refuse(k.execute(flat(""), line(1)), wire.InvalidArgument, "envelope_id cannot be empty")
	for _, text := range []string{"", "x", "{", `{"envelope_id":"a"}{}`, "[]", "5", "\"e\"", `{"iteration":NaN,"envelope_id":"e"}`} {
		k.invalid(k.execute(text, line(1)), "")
	}
	if k.e.Active() != 0 {
		t.Error("a session came of a refused call")
	}
}
