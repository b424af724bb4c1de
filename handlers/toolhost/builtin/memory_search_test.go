package builtin

import (
	"fmt"
	"strings"
	"testing"
)

func TestMemorySearch(t *testing.T) {
	m := newMemory(t)
	m.ok("MEMORY.SEARCH", `{"stream":"none"}`, `{"ok":true,"stream":"none","matches":[],"count":0}`)
	m.write("base/work/memory/s.jsonl", "{\"text\":\"one\"}\n\r\n\n{ \"text\": \"two\" }\r\nnot json \xff\n{\"text\":\"one more\"}\n")
	f := func(members, matches string, count int) {
		t.Helper()
		m.ok("MEMORY.SEARCH", `{"stream":"s"`+members+`}`, fmt.Sprintf(`{"ok":true,"stream":"s","matches":[%s],"count":%d}`, matches, count))
	}
	const one, two, bad, more = `"{\"text\":\"one\"}"`, `"{ \"text\": \"two\" }"`, "\"not json \uFFFD\"", `"{\"text\":\"one more\"}"`
	f(``, more+","+bad+","+two+","+one, 4)
	f(`,"contains":"one"`, more+","+one, 2)
	f(`,"contains":"ONE"`, ``, 0)
	f(`,"contains":5`, more+","+bad+","+two+","+one, 4)
	f(`,"contains":"one","limit":1`, more, 1)
	f(`,"limit":0`, more, 1)
	f(`,"limit":-5`, more, 1)
	f(`,"limit":2.0`, more+","+bad, 2)
	f(`,"limit":"2"`, more+","+bad+","+two+","+one, 4)
	m.fail("MEMORY.SEARCH", `{"stream":`+quote(strings.Repeat("s", 129))+`}`, "invalid stream")
}

func TestMemorySearchLimits(t *testing.T) {
	m := newMemory(t)
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "%-31d\n", i)
	}
	m.write("base/work/memory/s.jsonl", text.String())
	f := func(members string, want int) {
		t.Helper()
		r := m.call("MEMORY.SEARCH", `{"stream":"s"`+members+`}`)
		if got := strings.Count(string(r.Output), `  "`); got != want || !strings.HasSuffix(string(r.Output), fmt.Sprintf(`"count":%d}`, want)) {
			t.Errorf("%s: got %d, want %d: %.300s", members, got, want, r.Output)
		}
	}
	f(``, 20)
	f(`,"limit":200`, 200)
	f(`,"limit":201`, 200)
	// 4096 bytes are 128 lines exactly, and no line of 32 bytes fits the 31 bytes before them.
	f(`,"limit":200,"max_bytes":4096`, 128)
	f(`,"limit":200,"max_bytes":4095`, 128)
	f(`,"limit":200,"max_bytes":1`, 128)
	f(`,"limit":200,"max_bytes":4127`, 128)
	f(`,"limit":200,"max_bytes":4128`, 129)
}

func TestMemorySearchTornLine(t *testing.T) {
	m := newMemory(t)
	m.write("base/work/memory/s.jsonl", `{"text":"one"}`+"\n"+`{"text":"tw`)
	m.ok("MEMORY.SEARCH", `{"stream":"s"}`, `{"ok":true,"stream":"s","matches":["{\"text\":\"one\"}"],"count":1}`)
	m.write("base/work/memory/s.jsonl", `{"text":"one"}`+"\n"+`{"text":"two"}`)
	m.ok("MEMORY.SEARCH", `{"stream":"s","limit":1}`, `{"ok":true,"stream":"s","matches":["{\"text\":\"two\"}"],"count":1}`)
}

// TestOutputTooLarge: what no reply can carry is an error, whichever tool made it.
func TestOutputTooLarge(t *testing.T) {
	m := newMemory(t)
	line := func(n int) string { return `{"text":` + quote(strings.Repeat("x", n)) + "}\n" }
	envelope := len(`{"ok":true,"stream":"s","matches":["{\"text\":\"\"}"],"count":1}`)
	m.write("base/work/memory/s.jsonl", line(maxOutput-envelope))
	if r := m.call("MEMORY.SEARCH", `{"stream":"s","max_bytes":4000000}`); len(r.Output) != maxOutput {
		t.Errorf("at the limit: %q, %d bytes", r.ErrorText(), len(r.Output))
	}
	m.write("base/work/memory/s.jsonl", line(maxOutput-envelope+1))
	m.fail("MEMORY.SEARCH", `{"stream":"s","max_bytes":4000000}`, "output exceeds 1MB limit")
	m.write("base/work/memory/s.jsonl", strings.Repeat(line(300000), 5))
	m.fail("MEMORY.SEARCH", `{"stream":"s","max_bytes":4000000}`, "output exceeds 1MB limit")
	m.fail("MEMORY.QUERY", `{"stream":"s","max_bytes":4000000}`, "output exceeds 1MB limit")
	for i := range 5 {
		m.ok("VECDB.UPSERT", fmt.Sprintf(`{"text":"%d%s"}`, i, strings.Repeat("x", 300000)), `{"ok":true,"stream":"default"}`)
	}
	m.fail("VECDB.QUERY", `{"query":"x"}`, "output exceeds 1MB limit")
}
