package builtin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// memory is a bench whose clock the test sets.
type memory struct {
	*bench
	ctx  context.Context
	now  time.Time
	vars map[string]string
}

const testNow = 1700000000000

// newMemory returns a memory with the variables vars, in pairs.
func newMemory(t testing.TB, vars ...string) *memory {
	t.Helper()
	m := &memory{bench: newBench(t), ctx: t.Context(), now: time.UnixMilli(testNow), vars: map[string]string{}}
	m.set(vars...)
	return m
}

func (m *memory) set(vars ...string) {
	m.t.Helper()
	for i := 0; i < len(vars); i += 2 {
		m.vars[vars[i]] = strings.ReplaceAll(vars[i+1], "<base>", m.path("base"))
	}
	m.setEnv(m.vars)
}

// call runs the tool AID.<name>.v1.
func (m *memory) call(name, input string) tool.Result {
	c := tool.Call{AID: "AID." + name + ".v1", Input: []byte(input), State: new(sessionstate.State), Now: func() time.Time { return m.now }}
	return m.byID[c.AID].Run(m.ctx, &c)
}

// ok wants an output; <base> stands for the root. It may be called by several goroutines.
func (m *memory) ok(name, input, output string) {
	m.t.Helper()
	r := m.call(name, input)
	output = strings.ReplaceAll(output, "<base>", m.path("base"))
	if r.Status() != tool.OK || r.ErrorText() != "" || string(r.Output) != output {
		m.t.Errorf("%s %.200s:\n got %v %q %.500s\nwant %.500s", name, input, r.Status(), r.ErrorText(), r.Output, output)
	}
}

// fail wants an error.
func (m *memory) fail(name, input, text string) {
	m.t.Helper()
	if r := m.call(name, input); r.Status() != tool.ToolError || r.ErrorText() != text || len(r.Output) > 0 {
		m.t.Errorf("%s %.200s:\n got %v %q %.300s\nwant %q", name, input, r.Status(), r.ErrorText(), r.Output, text)
	}
}

// holds wants the file name, in base, to have that content.
func (m *memory) holds(name, want string) {
	m.t.Helper()
	if got := m.content("base/" + name); got != want {
		m.t.Errorf("%s:\n got %.500q\nwant %.500q", name, got, want)
	}
}

// TestMemoryDescriptors is the table of toolhost §4.7 for the tools about memory.
func TestMemoryDescriptors(t *testing.T) {
	m := newMemory(t)
	f := func(aid, name string, deterministic bool, effects, tags string, tier int, fast bool) {
		t.Helper()
		tl := m.byID[aid]
		got := fmt.Sprint(tl.AID, tl.Name, tl.Deterministic, tl.SideEffects, tl.Tags, tl.ReplayInputs, tl.Tier, tl.Fast, tl.Hidden, tl.External)
		want := fmt.Sprint(aid, name, deterministic, strings.Fields(effects), strings.Fields(tags), []string{}, tier, fast, false, false)
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	const in, out = "filesystem_read", "filesystem_write"
	f("AID.MEMORY.APPEND.v1", "memory_append", false, out, "tag.memory tag.fs tag.meta", 1, false)
	f("AID.MEMORY.SEARCH.v1", "memory_search", false, in, "tag.memory tag.fs tag.meta", 0, false)
	f("AID.MEMORY.QUERY.v1", "memory_query", false, in, "tag.memory tag.fs tag.meta", 0, false)
	f("AID.EMBED.TEXT.v1", "embed_text", true, "none", "tag.embed tag.meta", 0, true)
	f("AID.VECDB.UPSERT.v1", "vectordb_upsert", false, out, "tag.vectordb tag.memory tag.fs", 1, false)
	f("AID.VECDB.QUERY.v1", "vectordb_query", false, in, "tag.vectordb tag.memory tag.fs", 0, false)
}

func TestMemoryEnv(t *testing.T) {
	vars := map[string]string{}
	f := func(name, value string, want any, got func(e *MemoryEnv) any) {
		t.Helper()
		clear(vars)
		vars[name] = value
		e := memoryEnvFrom(func(name string) string { return vars[name] }, "/r")
		if got(&e) != want {
			t.Errorf("%s=%s: got %v, want %v", name, value, got(&e), want)
		}
	}
	dir := func(e *MemoryEnv) any { return e.MemoryRoot }
	f("", "", "/r/work/memory", dir)
	f("MACHINA_MEMORY_ROOT", "/r/./m/", "/r/m", dir)
	f("MACHINA_MEMORY_ROOT", "m", "/r/work/memory", dir)
	f("MACHINA_MEMORY_ROOT", "/elsewhere", "/elsewhere", dir)

	rotate := func(e *MemoryEnv) any { return e.RotateBytes }
	for value, want := range map[string]int64{"": 64 << 20, "0": 0, "1": 1, "-1": 64 << 20, "1e3": 64 << 20, "9223372036854775807": 1<<63 - 1, "9223372036854775808": 64 << 20} {
		f("MACHINA_MEMORY_ROTATE_BYTES", value, want, rotate)
	}
	sync := func(e *MemoryEnv) any { return e.WALFsync }
	for value, want := range map[string]bool{"": false, "1": true, "0": false, "true": false} {
		f("MACHINA_WAL_FSYNC", value, want, sync)
	}
	dim := func(e *MemoryEnv) any { return e.VecDim }
	for value, want := range map[string]int{"": 384, "1": 1, "8192": 8192, "8193": 384, "0": 384, "x": 384} {
		f("MACHINA_VECDB_DIM", value, want, dim)
	}
	weights := func(e *MemoryEnv) any { return e.Weights }
	f("", "", Weights{0.55, 0.35, 0.20, 0.10, 21600}, weights)
	f("MACHINA_MEMORY_W_OVERLAP", "2", Weights{2, 0.35, 0.20, 0.10, 21600}, weights)
	f("MACHINA_MEMORY_W_EMB", "-1.5", Weights{0.55, -1.5, 0.20, 0.10, 21600}, weights)
	f("MACHINA_MEMORY_W_BM25", "inf", Weights{0.55, 0.35, 0.20, 0.10, 21600}, weights)
	f("MACHINA_MEMORY_W_RECENCY", "NaN", Weights{0.55, 0.35, 0.20, 0.10, 21600}, weights)
	f("MACHINA_MEMORY_RECENCY_TAU_SEC", "60", Weights{0.55, 0.35, 0.20, 0.10, 60}, weights)
	f("MACHINA_MEMORY_RECENCY_TAU_SEC", "0", Weights{0.55, 0.35, 0.20, 0.10, 21600}, weights)
}

func TestStreamName(t *testing.T) {
	f := func(given, memory, vecdb string) {
		t.Helper()
		v := pick([]byte(`{"s":`+given+`}`), "s").value("s")
		if got, ok := streamName(v, memorySpecial); got != memory || ok != (memory != "") {
			t.Errorf("memory %s: got %q %v, want %q", given, got, ok, memory)
		}
		if got, ok := streamName(v, vecdbSpecial); got != vecdb || ok != (vecdb != "") {
			t.Errorf("vecdb %s: got %q %v, want %q", given, got, ok, vecdb)
		}
	}
	f(`null`, "default", "default")
	f(`7`, "default", "default")
	f(`""`, "default", "default")
	f(`"a.Z-0_9"`, "a.Z-0_9", "a_Z-0_9")
	f(`"../../etc"`, ".._.._etc", "______etc")
	f(`"a b/ö\u0000€"`, "a_b____", "a_b____")
	f(`".."`, "..", "__")
	under := strings.Repeat("_", 64)
	long := strings.Repeat("x", 128)
	f(quote(long), long, long)
	f(quote(long+"x"), "", "")
	f(quote(strings.Repeat("ö", 64)), under, under)
	f(quote(strings.Repeat("ö", 64)+"x"), "", "") // bytes count, not characters
	f(quote(strings.Repeat("é", 65)), "", "")
}
