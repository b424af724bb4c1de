package builtin

import (
	"context"
	"os"
	"strings"
	"testing"
)

func TestMemoryAppend(t *testing.T) {
	m := newMemory(t)
	const done = `{"ok":true,"stream":"s","file":"<base>/work/memory/s.jsonl","ts_ms":1700000000000}`
	want := ""
	f := func(members, line string) {
		t.Helper()
		m.ok("MEMORY.APPEND", `{"stream":"s",`+members+`}`, done)
		want += `{"ts_ms":1700000000000,"stream":"s"` + line + "}\n"
		m.holds("work/memory/s.jsonl", want)
	}
	f(`"text":"hi"`, `,"text":"hi"`)
	f(`"text":"a\"\\\n\u0000ö\ud800"`, `,"text":"a\"\\\n\u0000ö`+"\uFFFD"+`"`)
	f(`"event":{ "a" : [1.50, "x y"],`+"\n"+`"b":null }`, `,"event":{"a":[1.50,"x y"],"b":null}`)
	f(`"event":false`, `,"event":false`)
	f(`"event":"e","text":"t"`, `,"event":"e","text":"t"`) // both (toolhost D25)
	f(`"event":1,"text":""`, `,"event":1`)
	f(`"event":1,"text":5`, `,"event":1`)
	f(`"text":"first","text":"last"`, `,"text":"last"`)
	m.ok("MEMORY.APPEND", `{"text":"x"}`, `{"ok":true,"stream":"default","file":"<base>/work/memory/default.jsonl","ts_ms":1700000000000}`)
	m.ok("MEMORY.APPEND", `{"stream":"../é","text":"x"}`, `{"ok":true,"stream":"..__","file":"<base>/work/memory/..__.jsonl","ts_ms":1700000000000}`)
	m.holds("work/memory/..__.jsonl", `{"ts_ms":1700000000000,"stream":"..__","text":"x"}`+"\n")
}

func TestMemoryAppendRefuses(t *testing.T) {
	m := newMemory(t)
	f := func(input, text string) {
		t.Helper()
		m.fail("MEMORY.APPEND", input, text)
	}
	f(`{}`, "missing event or text")
	f(`{"event":null,"text":""}`, "missing event or text")
	f(`{"text":["x"]}`, "missing event or text")
	f(`{"stream":`+quote(strings.Repeat("s", 129))+`,"text":"x"}`, "invalid stream")
	f(`{"stream":`+quote(strings.Repeat("s", 129))+`}`, "missing event or text")

	text := strings.Repeat("\x01", 1<<20)
	f(`{"text":`+quote(text+"x")+`}`, "content too large (>1MB)")
	f(`{"event":1,"text":`+quote(text)+`}`, "content too large (>1MB)")
	f(`{"event":[`+strings.Repeat("1,", 1<<19)+`1]}`, "content too large (>1MB)")
	m.holds("work/memory/default.jsonl", "-")
	m.ok("MEMORY.APPEND", `{"text":`+quote(text)+`}`, `{"ok":true,"stream":"default","file":"<base>/work/memory/default.jsonl","ts_ms":1700000000000}`)
	m.ok("MEMORY.SEARCH", `{"max_bytes":10000000,"contains":"nothing like it"}`, `{"ok":true,"stream":"default","matches":[],"count":0}`)
}

func TestMemoryRoot(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_ROOT", "<base>/mem/ory")
	m.ok("MEMORY.APPEND", `{"text":"x"}`, `{"ok":true,"stream":"default","file":"<base>/mem/ory/default.jsonl","ts_ms":1700000000000}`)
	m.holds("mem/ory/default.jsonl", `{"ts_ms":1700000000000,"stream":"default","text":"x"}`+"\n")
	outside := func() {
		t.Helper()
		const text = "MACHINA_MEMORY_ROOT must be under MACHINA_ROOT"
		m.fail("MEMORY.APPEND", `{"text":"x"}`, text)
		m.fail("MEMORY.SEARCH", `{}`, text)
		m.fail("MEMORY.QUERY", `{}`, text)
	}
	for _, dir := range []string{"<base>x", "<base>/../outside", "/"} {
		m.set("MACHINA_MEMORY_ROOT", dir)
		outside()
	}
	m.link("../outside", "base/out")
	m.set("MACHINA_MEMORY_ROOT", "<base>/out")
	outside()
	if m.content("outside/default.jsonl") != "-" {
		t.Error("a file outside of the root was written")
	}
}

// TestMemoryFileIsNone: what has the name of the file of a stream and is no regular file is neither
// read nor written.
func TestMemoryFileIsNone(t *testing.T) {
	m := newMemory(t)
	f := func(name string) {
		t.Helper()
		m.fail("MEMORY.APPEND", `{"stream":"`+name+`","text":"x"}`, "open failed")
		m.fail("MEMORY.SEARCH", `{"stream":"`+name+`"}`, "open failed")
		m.fail("MEMORY.QUERY", `{"stream":"`+name+`"}`, "open failed")
	}
	m.write("base/work/memory/real.jsonl", "{}\n")
	m.link("real.jsonl", "base/work/memory/in.jsonl")
	m.link("../../../outside/secret", "base/work/memory/out.jsonl")
	if err := os.Mkdir(m.path("base/work/memory/dir.jsonl"), 0o755); err != nil {
		t.Fatal(err)
	}
	f("in")
	f("out")
	f("dir")
	m.holds("work/memory/real.jsonl", "{}\n")
	if m.content("outside/secret") != secret {
		t.Error("a file outside of the root was written")
	}
}

func TestMemoryRotation(t *testing.T) {
	const line = `{"ts_ms":1700000000000,"stream":"s","text":"x"}` + "\n"
	appendTo := func(m *memory) {
		m.t.Helper()
		m.ok("MEMORY.APPEND", `{"stream":"s","text":"x"}`, `{"ok":true,"stream":"s","file":"<base>/work/memory/s.jsonl","ts_ms":1700000000000}`)
	}
	m := newMemory(t, "MACHINA_MEMORY_ROTATE_BYTES", "48", "MACHINA_WAL_FSYNC", "1")
	m.write("base/work/memory/s.jsonl", strings.Repeat("o", 46)+"\n")
	appendTo(m)
	m.holds("work/memory/s.jsonl", strings.Repeat("o", 46)+"\n"+line)
	m.write("base/work/memory/s.jsonl", strings.Repeat("o", 47)+"\n")
	appendTo(m)
	m.holds("work/memory/s.jsonl", line)
	m.holds("work/memory/s.jsonl.1700000000000.rotated", strings.Repeat("o", 47)+"\n")
	// The same millisecond again: nothing is replaced.
	appendTo(m)
	m.holds("work/memory/s.jsonl.1700000000000.rotated", strings.Repeat("o", 47)+"\n")
	m.holds("work/memory/s.jsonl.1700000000001.rotated", line)
	m.holds("work/memory/s.jsonl", line)

	m.set("MACHINA_MEMORY_ROTATE_BYTES", "0")
	appendTo(m)
	m.holds("work/memory/s.jsonl", line+line)
}

func TestMemoryRotationGivesUp(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_ROTATE_BYTES", "1")
	m.write("base/work/memory/s.jsonl", "old\n")
	for at := range int64(maxRotateTries) {
		m.write("base/work/memory/"+rotatedName("s.jsonl", testNow+at), "")
	}
	m.fail("MEMORY.APPEND", `{"stream":"s","text":"x"}`, "open failed")
	m.holds("work/memory/s.jsonl", "old\n")
	if err := os.Remove(m.path("base/work/memory/" + rotatedName("s.jsonl", testNow+maxRotateTries-1))); err != nil {
		t.Fatal(err)
	}
	m.ok("MEMORY.APPEND", `{"stream":"s","text":"x"}`, `{"ok":true,"stream":"s","file":"<base>/work/memory/s.jsonl","ts_ms":1700000000000}`)
}

// TestMemoryAppendAfterTornLine: what a killed writer left does not take the next line with it.
func TestMemoryAppendAfterTornLine(t *testing.T) {
	m := newMemory(t)
	m.write("base/work/memory/s.jsonl", `{"text":"one"}`+"\n"+`{"ts_ms":17,"te`)
	m.ok("MEMORY.APPEND", `{"stream":"s","text":"two"}`, `{"ok":true,"stream":"s","file":"<base>/work/memory/s.jsonl","ts_ms":1700000000000}`)
	m.holds("work/memory/s.jsonl", `{"text":"one"}`+"\n"+`{"ts_ms":17,"te`+"\n"+`{"ts_ms":1700000000000,"stream":"s","text":"two"}`+"\n")
}

func TestMemoryCanceled(t *testing.T) {
	m := newMemory(t)
	m.write("base/work/memory/s.jsonl", strings.Repeat(`{"text":"one"}`+"\n", 10))
	m.ok("VECDB.UPSERT", `{"text":"x"}`, `{"ok":true,"stream":"default"}`)
	row := m.content("base/work/vectordb/default/embeddings.f32")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.ctx = ctx
	for name, input := range map[string]string{
		"MEMORY.APPEND": `{"stream":"s","text":"two"}`,
		"MEMORY.SEARCH": `{"stream":"s"}`,
		"MEMORY.QUERY":  `{"stream":"s","query":"one"}`,
		"VECDB.UPSERT":  `{"text":"y"}`,
		"VECDB.QUERY":   `{"query":"y"}`,
	} {
		m.fail(name, input, "context canceled")
	}
	m.holds("work/memory/s.jsonl", strings.Repeat(`{"text":"one"}`+"\n", 10))
	m.holds("work/vectordb/default/embeddings.f32", row)
}
