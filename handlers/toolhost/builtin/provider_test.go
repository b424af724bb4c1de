package builtin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// program is an embedding program: it answers with reply, and with a failure if that is empty.
type program struct {
	asked []string
	reply string
	run   func(ctx context.Context)
}

func (p *program) Run(ctx context.Context, c *tool.Call) tool.Result {
	p.asked = append(p.asked, string(c.Input))
	if p.run != nil {
		p.run(ctx)
	}
	if p.reply == "" {
		return tool.Broken(c.AID, tool.Crash, 3, "no model")
	}
	return tool.Result{Output: []byte(p.reply)}
}

// newProgram returns a bench whose embeddings p makes.
func newProgram(t *testing.T, p *program, vars ...string) *memory {
	m := newMemory(t, append([]string{"MACHINA_EMBED_PROVIDER", "cmd", "MACHINA_EMBED_CMD", "embed", "MACHINA_VECDB_DIM", "2"}, vars...)...)
	m.env.Embed.Program = p
	for _, tl := range Builtins(m.env) {
		m.byID[tl.AID] = tl
	}
	return m
}

func TestEmbedProvider(t *testing.T) {
	p := &program{reply: `{"embedding":[3,-4e0]}`}
	m := newProgram(t, p)
	m.ok("EMBED.TEXT", `{"text":"h\"i","dim":2}`, `{"provider":"cmd","dim":2,"embedding":[0.600000,-0.800000]}`)
	m.ok("EMBED.TEXT", `{"text":"hi","dim":2,"normalize":false}`, `{"provider":"cmd","dim":2,"embedding":[3.000000,-4.000000]}`)
	if got := strings.Join(p.asked, " "); got != `{"text":"h\"i","dim":2} {"text":"hi","dim":2}` {
		t.Errorf("asked %s", got)
	}
	if d := m.byID[EmbedAID].Descriptor; d.Fast || d.Deterministic || d.Tier != 0 {
		t.Errorf("%+v", d)
	}
	p.reply = `{"embedding":[0,0]}`
	m.ok("EMBED.TEXT", `{"text":"hi","dim":2}`, `{"provider":"cmd","dim":2,"embedding":[0.000000,0.000000]}`)
	p.reply = `{"embedding":[` + strings.Repeat("1,", 1023) + `1]}`
	m.ok("EMBED.TEXT", `{"text":"hi","dim":1024,"normalize":false}`, `{"provider":"cmd","dim":1024,"embedding":[`+strings.Repeat("1.000000,", 1023)+`1.000000]}`)

	f := func(reply, why string) {
		t.Helper()
		p.reply = reply
		m.fail("EMBED.TEXT", `{"text":"hi","dim":2}`, "embedding failed: "+why)
	}
	f(``, "toolhost exit 3: no model")
	f(`{}`, "the reply has no embedding")
	f(`{"embedding":"x"}`, "the reply has no embedding")
	f(`{"error":"out of\nmemory"}`, "out of memory")
	f(`{"embedding":[]}`, "0 components instead of 2")
	f(`{"embedding":[1]}`, "1 components instead of 2")
	f(`{"embedding":[1,2,3]}`, "3 components instead of 2")
	f(`{"embedding":[1,null]}`, "component 1 is no number that 32 bits hold")
	f(`{"embedding":["1",2]}`, "component 0 is no number that 32 bits hold")
	f(`{"embedding":[1e39,2]}`, "component 0 is no number that 32 bits hold")
	m.fail("EMBED.TEXT", `{"text":""}`, "missing text")
}

// TestEmbedFallback: only where the operator asked for it, and the reply shows it.
func TestEmbedFallback(t *testing.T) {
	p := &program{}
	m := newProgram(t, p, "MACHINA_EMBED_FALLBACK", "hash")
	m.ok("EMBED.TEXT", `{"text":"hi","dim":4}`, `{"provider":"hash","dim":4,"embedding":[-0.170019,0.094569,-0.782131,0.591964]}`)
	m.ok("EMBED.TEXT", `{"text":"hi","dim":4,"normalize":false}`, `{"provider":"hash","dim":4,"embedding":[-0.214373,0.119240,-0.986173,0.746395]}`)
	m.ok("VECDB.UPSERT", `{"text":"hi"}`, `{"ok":true,"stream":"default"}`)
	if got := string(m.call("VECDB.QUERY", `{"query":"hi"}`).Output); !strings.HasPrefix(got, `{"ok":true,"provider":"hash","hits":[{"i":0,"score":1.000000,`) {
		t.Error(got)
	}
}

// TestEmbedTimeout: a program that hangs ends no later than MACHINA_EMBED_TIMEOUT_MS, and the hash
// can still stand in for it.
func TestEmbedTimeout(t *testing.T) {
	p := &program{run: func(ctx context.Context) { <-ctx.Done() }}
	m := newProgram(t, p, "MACHINA_EMBED_FALLBACK", "hash", "MACHINA_EMBED_TIMEOUT_MS", "1")
	m.ok("EMBED.TEXT", `{"text":"hi","dim":4}`, `{"provider":"hash","dim":4,"embedding":[-0.170019,0.094569,-0.782131,0.591964]}`)
}

// TestEmbedWaitsAside: a call needs no place while the program works.
func TestEmbedWaitsAside(t *testing.T) {
	at := &place{inside: true, away: func() {}}
	p := &program{reply: `{"embedding":[1,0]}`}
	p.run = func(context.Context) {
		if at.inside {
			t.Error("it has its place")
		}
	}
	m := newProgram(t, p)
	m.ctx = tool.WithPlace(m.ctx, at)
	if m.ok("VECDB.UPSERT", `{"text":"hi"}`, `{"ok":true,"stream":"default"}`); !at.inside || len(p.asked) != 1 {
		t.Errorf("it has a place: %v, asked %q", at.inside, p.asked)
	}
}

func TestVecdbProvider(t *testing.T) {
	p := &program{reply: `{"embedding":[0,2]}`}
	m := newProgram(t, p)
	m.ok("VECDB.UPSERT", `{"text":"hi"}`, `{"ok":true,"stream":"default"}`)
	m.holds(storeDir+schemaFile, `{"dim":2,"provider":"cmd"}`)
	m.holds(storeDir+embeddingsFile, rowsOf([]float32{0, 1}))
	m.holds(storeDir+metaFile, `{"i":0,"ts_ms":1700000000000,"provider":"cmd","text":"hi"}`+"\n")
	p.reply = `{"embedding":[3,4]}`
	m.ok("VECDB.QUERY", `{"query":"ho"}`, `{"ok":true,"provider":"cmd","hits":[{"i":0,"score":0.800000,`+
		`"meta_line":"{\"i\":0,\"ts_ms\":1700000000000,\"provider\":\"cmd\",\"text\":\"hi\"}"}]}`)
	p.reply = ""
	m.fail("VECDB.UPSERT", `{"text":"hi"}`, "embedding failed: toolhost exit 3: no model")
	m.fail("VECDB.QUERY", `{"query":"hi"}`, "embedding failed: toolhost exit 3: no model")
	m.holds(storeDir+embeddingsFile, rowsOf([]float32{0, 1}))

	// Vectors of two providers cannot be compared.
	other := "the vectors of the store are of another embedding provider"
	m.set("MACHINA_EMBED_PROVIDER", "hash")
	m.fail("VECDB.UPSERT", `{"text":"hi"}`, other)
	m.fail("VECDB.QUERY", `{"query":"hi"}`, other)
	m.ok("VECDB.UPSERT", `{"stream":"h","text":"hi"}`, `{"ok":true,"stream":"h"}`)
	m.env.Embed.Program = p
	m.fail("VECDB.UPSERT", `{"stream":"h","text":"hi"}`, other)
}

// TestIndexOnAppend: what is appended is found by VECDB.QUERY, and nothing is appended that could
// not be embedded.
func TestIndexOnAppend(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_VECDB_ENABLE", "1", "MACHINA_VECDB_DIM", "8")
	for _, input := range []string{`{"stream":"a.b","text":"bees","event":{"k":1}}`, `{"stream":"a.b","event":{ "k" : "v" }}`} {
		if r := m.call("MEMORY.APPEND", input); r.Status() != tool.OK {
			t.Fatal(r.ErrorText())
		}
	}
	m.holds("work/vectordb/a_b/"+metaFile, `{"i":0,"ts_ms":1700000000000,"provider":"hash","text":"bees"}`+"\n"+
		`{"i":1,"ts_ms":1700000000000,"provider":"hash","text":"{\"k\":\"v\"}"}`+"\n")
	m.holds("work/vectordb/a_b/"+embeddingsFile, rowsOf(embedding("bees", 8), embedding(`{"k":"v"}`, 8)))
	if got := string(m.call("VECDB.QUERY", `{"stream":"a.b","query":"bees","top_k":1}`).Output); !strings.Contains(got, `"hits":[{"i":0,"score":1.000000,`) {
		t.Error(got)
	}
	m.set("MACHINA_MEMORY_VECDB_ENABLE", "0")
	m.call("MEMORY.APPEND", `{"stream":"off","text":"bees"}`)
	m.holds("work/vectordb/off/"+metaFile, "-")

	p := &program{}
	m = newProgram(t, p, "MACHINA_MEMORY_VECDB_ENABLE", "1")
	m.fail("MEMORY.APPEND", `{"stream":"s","text":"bees"}`, "embedding failed: toolhost exit 3: no model")
	m.holds("work/memory/s.jsonl", "-")
	m.write("base/work/vectordb/s/meta.jsonl/x", "a directory in the way")
	p.reply = `{"embedding":[1,2]}`
	m.fail("MEMORY.APPEND", `{"stream":"s","text":"bees"}`, "appended, but not indexed: open failed")
	m.holds("work/memory/s.jsonl", `{"ts_ms":1700000000000,"stream":"s","text":"bees"}`+"\n")
}

func TestEmbedEnv(t *testing.T) {
	f := func(provider, command, fallback, timeout string, want EmbedEnv, why string) {
		t.Helper()
		vars := map[string]string{"MACHINA_EMBED_PROVIDER": provider, "MACHINA_EMBED_CMD": command, "MACHINA_EMBED_FALLBACK": fallback,
			"MACHINA_EMBED_TIMEOUT_MS": timeout}
		e, err := EnvFrom(func(name string) string { return vars[name] }, "/w")
		if why != "" {
			if err == nil || err.Error() != why {
				t.Errorf("%q %q %q: %v, want %s", provider, command, fallback, err, why)
			}
			return
		}
		if err != nil || e.Embed != want {
			t.Errorf("%q %q %q %q: %+v %v, want %+v", provider, command, fallback, timeout, e.Embed, err, want)
		}
	}
	usual := EmbedEnv{Timeout: 10 * time.Second}
	f("", "", "", "", usual, "")
	f("hash", "prog", "", "0", usual, "")
	f("", "prog", "", "600001", usual, "")
	f("", "", "", "600000", EmbedEnv{Timeout: 600 * time.Second}, "")
	f("", "", "", "1", EmbedEnv{Timeout: time.Millisecond}, "")
	f("cmd", "prog -x", "hash", "", EmbedEnv{Command: "prog -x", Fallback: true, Timeout: 10 * time.Second}, "")
	f("cmd", "", "", "", usual, `cannot use MACHINA_EMBED_PROVIDER = "cmd": MACHINA_EMBED_CMD is not set`)
	for _, name := range []string{"CMD", "openai", " hash"} {
		f(name, "prog", "", "", usual, fmt.Sprintf("cannot use MACHINA_EMBED_PROVIDER = %q: want hash or cmd", name))
	}
	f("hash", "", "none", "", usual, `cannot use MACHINA_EMBED_FALLBACK = "none": want hash, or nothing`)
}

// TestEmbeddingsTakeTurns: the time of an embedding is the program's. A text that waits for others
// does not cost it, and one that gets the program too late is not given to it.
func TestEmbeddingsTakeTurns(t *testing.T) {
	f := func(calls, want int, within time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var made, cut, refused atomic.Int32
			free := make(chan struct{}, 1) // as the one process
			e := EmbedEnv{Timeout: time.Second}
			e.Use(programFunc(func(ctx context.Context, c *tool.Call) tool.Result {
				select {
				case free <- struct{}{}:
					defer func() { <-free }()
				case <-ctx.Done():
					return tool.Broken(c.AID, tool.Timeout, 0, "")
				}
				select {
				case <-time.After(300 * time.Millisecond):
					return tool.Result{Output: []byte(`{"embedding":[1]}`)}
				case <-ctx.Done():
					cut.Add(1)
					return tool.Broken(c.AID, tool.Timeout, 0, "")
				}
			}))
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					switch _, err := e.embed(ctx, "text", 1, true); err {
					case nil:
						made.Add(1)
					case errNoTurn:
						refused.Add(1)
					}
				})
			}
			all.Wait()
			if made, cut, refused := int(made.Load()), cut.Load(), int(refused.Load()); made != want || cut != 0 || refused != calls-want {
				t.Errorf("%d calls within %s: %d made, %d cut, %d refused; want %d made, the others refused", calls, within, made, cut, refused, want)
			}
		})
	}
	f(16, 16, 30*time.Second)
	f(16, 4, 2*time.Second)        // at 0, 0.3, 0.6, 0.9 s
	f(16, 2, 800*time.Millisecond) // at 0, 0.3 s
}

type programFunc func(ctx context.Context, c *tool.Call) tool.Result

// Run implements tool.Tool.
func (f programFunc) Run(ctx context.Context, c *tool.Call) tool.Result { return f(ctx, c) }
