package questions

// Question: what does finding the members of a tool request in its line cost, and how much of that
// is more than checking it?

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
)

func BenchmarkLineScan(b *testing.B) {
	var all []question
	for _, l := range []struct{ name, text string }{
		{"noop", `{"aid":"AID.NOOP.v1"}`},
		{"echo", `{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":1}"}`},
		{"keyed", `{"aid":"AID.EMBED.TEXT.v1","input_json":"the quick brown fox jumps over the lazy dog","ds_state":{},` +
			`"idempotency_key":"0f3c9d1e-77aa-4b52-9f0e-3d5b8a6c2e11","_lease_token":"lease_00112233445566778899aabbccddeeff","request_id":42}`},
		{"large", `{"aid":"AID.HASH.v1","inputs":{"text":"` + strings.Repeat("plain text without an end ", 640) + `"}}`},
	} {
		all = append(all,
			question{name: fmt.Sprintf("scan/%s/size=%d", l.name, len(l.text)), prepare: scanWork(l.text)},
			question{name: fmt.Sprintf("check/%s/size=%d", l.name, len(l.text)), prepare: checkWork(l.text)})
	}
	measure(b, all)
}

func scanWork(text string) func(testing.TB) work {
	return func(tb testing.TB) work {
		names := jsonx.NewNames("aid", "input_json", "inputs", "ds_state", "idempotency_key", "_lease_token", "request_id", "run_id")
		line, out := []byte(text), make([]jsonx.Member, names.Len())
		if r, _ := names.Scan(line, 32, out); r != jsonx.ScanOK || !strings.HasPrefix(string(out[0].Raw), "AID.") {
			tb.Fatalf("result %d, aid %q", r, out[0].Raw)
		}
		return work{run: func() { names.Scan(line, 32, out) }, bytes: len(line)}
	}
}

func checkWork(text string) func(testing.TB) work {
	return func(tb testing.TB) work {
		line := []byte(text)
		if p := jsonx.Check(line, 32); !p.OK() {
			tb.Fatal(p)
		}
		return work{run: func() { jsonx.Check(line, 32) }, bytes: len(line)}
	}
}
