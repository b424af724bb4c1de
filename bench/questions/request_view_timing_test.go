package questions

// Question: what does it cost to find id, service, method and the body's fields in a request, in
// the order that clients mostly write and in any other?

import (
	"testing"

	"trunkline/codec/mpack"
)

func BenchmarkRequestView(b *testing.B) { measure(b, requestViews()) }

func requestViews() []question {
	const pid = `"pid":"00000000-0000-4000-8000-000000000001"`
	return []question{
		{name: "head", prepare: headView(`{` + pid + `}`)},
		{name: "usual/fields=1", free: true, prepare: usualView(`{`+pid+`}`, "pid")},
		{name: "usual/fields=4", free: true, prepare: usualView(`{`+pid+`,"llm_calls":1,"tokens_in":120,"tokens_out":300}`,
			"pid", "llm_calls", "tool_calls", "tokens_in", "tokens_out")},
		{name: "usual/strangers=8", free: true, prepare: usualView(
			`{"a":1,"b":[1,2,3],"c":{"d":"e"},"f":null,"g":2.5,"h":"text","i":false,"j":"more text",`+pid+`}`, "pid")},
		{name: "any", prepare: anyView(`{`+pid+`,"llm_calls":1,"tokens_in":120,"tokens_out":300}`,
			"pid", "llm_calls", "tool_calls", "tokens_in", "tokens_out")},
	}
}

// payloadOf is the payload of a request of 36-byte names in the usual order.
func payloadOf(tb testing.TB, body string) []byte {
	return mpack.AppendRequest(nil, []byte("00000001"), []byte("kernel"), []byte("RecordUsage"), encode(tb, body))
}

// headView parses the head alone.
func headView(body string) func(testing.TB) work {
	return func(tb testing.TB) work {
		payload := payloadOf(tb, body)
		var r mpack.Request
		if _, ok := mpack.ParseHead(payload, &r); !ok || string(r.Method) != "RecordUsage" {
			tb.Fatalf("method %q", r.Method)
		}
		return work{run: func() { mpack.ParseHead(payload, &r) }, bytes: len(payload)}
	}
}

// usualView parses a request as the short way of a session does.
func usualView(body string, names ...string) func(testing.TB) work {
	return func(tb testing.TB) work {
		payload, fields, values := payloadOf(tb, body), mpack.Fields(names...), make([]mpack.Value, len(names))
		var r mpack.Request
		var sc mpack.Scanner
		parse := func() (end int) {
			at, _ := mpack.ParseHead(payload, &r)
			end, _ = sc.ParseFields(payload, at, fields, values)
			return end
		}
		if end := parse(); end != len(payload) {
			tb.Fatalf("the body ends at %d of %d", end, len(payload))
		}
		wantFields(tb, &r, values)
		return work{run: func() { parse() }, bytes: len(payload)}
	}
}

// anyView parses a request whose members come in another order, as a session does that has to
// evaluate it.
func anyView(body string, names ...string) func(testing.TB) work {
	return func(tb testing.TB) work {
		payload := mpack.AppendMap(nil, 4)
		payload = append(mpack.AppendStr(payload, "body"), encode(tb, body)...)
		for _, member := range [][2]string{{"method", "RecordUsage"}, {"service", "kernel"}, {"id", "00000001"}} {
			payload = mpack.AppendStr(mpack.AppendStr(payload, member[0]), member[1])
		}
		fields, values := mpack.Fields(names...), make([]mpack.Value, len(names))
		var r mpack.Request
		var sc mpack.Scanner
		parse := func() bool {
			if p := sc.ParseRequest(payload, &r); p != mpack.NoProblem {
				return false
			}
			_, p := sc.ParseFields(r.Body, 0, fields, values)
			return p == mpack.NoProblem
		}
		if !parse() {
			tb.Fatal("refused")
		}
		wantFields(tb, &r, values)
		return work{run: func() { parse() }, bytes: len(payload)}
	}
}

func wantFields(tb testing.TB, r *mpack.Request, values []mpack.Value) {
	tb.Helper()
	if string(r.ID) != "00000001" || string(r.Service) != "kernel" || string(r.Method) != "RecordUsage" {
		tb.Fatalf("id %q, service %q, method %q", r.ID, r.Service, r.Method)
	}
	if pid := values[0]; pid.Kind != mpack.Str || len(pid.Data) != 36 {
		tb.Fatalf("pid %+v", pid)
	}
}
