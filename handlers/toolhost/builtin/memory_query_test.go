package builtin

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/tool"
)

// matches are what a test looks at in the output of a query.
type match struct {
	File                      string
	TS                        int64 `json:"ts_ms"`
	Score, Overlap, Emb, BM25 float64
	MaxSim                    *float64 `json:"mmr_max_sim"`
	Raw                       *string
	Text                      string
}

// ask runs a query and returns its matches.
func (m *memory) ask(members string) []match {
	m.t.Helper()
	r := m.call("MEMORY.QUERY", `{`+members+`}`)
	var out struct {
		OK      bool
		Count   int
		Matches []match
	}
	if err := json.Unmarshal(r.Output, &out); err != nil || r.Status() != tool.OK || !out.OK || out.Count != len(out.Matches) {
		m.t.Fatalf("%s: %v %q %.300s", members, err, r.ErrorText(), r.Output)
	}
	return out.Matches
}

// texts runs a query and wants the texts of its matches.
func (m *memory) texts(members, want string) {
	m.t.Helper()
	var got []string
	for _, x := range m.ask(members) {
		got = append(got, x.Text)
	}
	if strings.Join(got, "|") != want {
		m.t.Errorf("%s:\n got %q\nwant %q", members, got, want)
	}
}

// The numbers come from an independent program.
const threeLines = `{"ts_ms":1699996400000,"stream":"s","text":"alpha beta gamma"}
{"ts_ms": 1699999940000, "stream": "s", "text": "alpha alpha delta x"}
{"ts_ms":1700000000000,"text":"nothing here"}
`

func TestMemoryQueryScores(t *testing.T) {
	m := newMemory(t)
	m.write("base/work/memory/s.jsonl", threeLines)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	f := func(x match, score, overlap, emb, bm25, sim float64, ts int64, text string) {
		t.Helper()
		near("score", x.Score, score)
		near("overlap", x.Overlap, overlap)
		near("emb", x.Emb, emb)
		near("bm25", x.BM25, bm25)
		near("mmr_max_sim", *x.MaxSim, sim)
		if x.TS != ts || x.Text != text || x.File != m.path("base/work/memory/s.jsonl") || !strings.Contains(threeLines, *x.Raw+"\n") {
			t.Errorf("got %+v", x)
		}
	}
	got := m.ask(`"stream":"s","query":"Alpha BETA?","debug":true`)
	if len(got) != 3 {
		t.Fatalf("got %d matches", len(got))
	}
	f(got[0], 1.266162, 1, 0.183858, 2.835816, 0, 1699996400000, "alpha beta gamma")
	f(got[1], 1.050183, 1, 0.166784, 1.710431, 0.334473, 1699999940000, "alpha alpha delta x")
	f(got[2], 0.049637, 0, -0.143893, 0, 0.479250, 1700000000000, "nothing here")

	// Each occurrence counts, divided by the distinct tokens of the query.
	m.write("base/work/memory/bees.jsonl", `{"ts_ms":1700000000000,"text":"bees bees bees"}`+"\n")
	for query, want := range map[string]float64{"bees": 3, "bees Bees": 3, "bees ants": 1.5, "ants": 0} {
		near(query, m.ask(`"stream":"bees","query":"` + query + `"`)[0].Overlap, want)
	}

	plain := m.call("MEMORY.QUERY", `{"stream":"s","query":"zz","top_k":1,"mode":"embed","embed_dim":16}`)
	want := fmt.Sprintf(`{"ok":true,"stream":"s","count":1,"matches":[{"file":%q,"ts_ms":`, m.path("base/work/memory/s.jsonl"))
	if !strings.HasPrefix(string(plain.Output), want) || strings.Contains(string(plain.Output), `"raw"`) {
		t.Errorf("got %s", plain.Output)
	}
}

// TestMemoryQueryKeepsNegativeSimilarity: a text that points away from the query ranks below one
// that has nothing to do with it, as in the reference.
func TestMemoryQueryKeepsNegativeSimilarity(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_W_RECENCY", "0")
	const dim = 16
	query := divideByNorm(hashComponents("alpha"), dim)
	away := ""
	for i := 0; away == ""; i++ {
		word := fmt.Sprint("word", i)
		if c := divideByNorm(hashComponents(word), dim); dotHashed(&query, &c, dim) < -0.3 {
			away = word
		}
	}
	m.write("base/work/memory/s.jsonl", `{"ts_ms":2,"text":"`+away+`"}`+"\n"+`{"ts_ms":1,"text":"?"}`+"\n")
	got := m.ask(`"stream":"s","query":"alpha","mode":"embed","embed_dim":16`)
	if len(got) != 2 || got[0].Text != "?" || got[1].Emb > -0.3 || math.Abs(got[1].Score-0.35*got[1].Emb) > 1e-12 {
		t.Errorf("got %+v", got)
	}
}

func TestMemoryQueryModes(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_W_RECENCY", "0")
	m.write("base/work/memory/s.jsonl", threeLines)
	f := func(mode string, w Weights) {
		t.Helper()
		for _, x := range m.ask(`"stream":"s","query":"alpha beta","mode":"` + mode + `"`) {
			if want := w.Overlap*x.Overlap + w.Emb*x.Emb + w.BM25*x.BM25; math.Abs(x.Score-want) > 1e-12 {
				t.Errorf("%s: got %v, want %v", mode, x.Score, want)
			}
		}
	}
	all := Weights{Overlap: 0.55, Emb: 0.35, BM25: 0.20}
	for _, mode := range []string{"hybrid", "auto", "semantic", "vecdb"} {
		f(mode, all)
	}
	f("bm25", Weights{Overlap: 0.55, BM25: 0.20})
	f("embed", Weights{Emb: 0.35})
	m.set("MACHINA_MEMORY_W_OVERLAP", "3", "MACHINA_MEMORY_W_EMB", "0", "MACHINA_MEMORY_W_BM25", "-1")
	f("hybrid", Weights{Overlap: 3, BM25: -1})
	m.fail("MEMORY.QUERY", `{"mode":""}`, "invalid mode")
	m.fail("MEMORY.QUERY", `{"mode":"BM25","stream":`+quote(strings.Repeat("s", 129))+`}`, "invalid mode")
	m.fail("MEMORY.QUERY", `{"mode":5,"stream":`+quote(strings.Repeat("s", 129))+`}`, "invalid stream")

	// Weights that lead out of the numbers still give JSON.
	m.set("MACHINA_MEMORY_W_OVERLAP", "1.7e308", "MACHINA_MEMORY_W_BM25", "1.7e308")
	m.texts(`"stream":"s","query":"alpha beta","rerank":"none"`, "nothing here|alpha alpha delta x|alpha beta gamma")
}

// TestMemoryQueryKeeps: which lines are entries, and what their text is (toolhost §4.7, D26).
func TestMemoryQueryKeeps(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_W_EMB", "0", "MACHINA_MEMORY_W_RECENCY", "0")
	const none = `{"ok":true,"stream":"s","matches":[],"count":0}`
	m.ok("MEMORY.QUERY", `{"stream":"s"}`, none)
	m.write("base/work/memory/s.jsonl", "")
	m.ok("MEMORY.QUERY", `{"stream":"s"}`, none)
	f := func(line, text string) {
		t.Helper()
		m.write("base/work/memory/s.jsonl", line)
		if text == "" {
			m.ok("MEMORY.QUERY", `{"stream":"s"}`, none)
		} else {
			m.texts(`"stream":"s"`, text)
		}
	}
	f(`{"stream":"s","text":"a"}`+"\n", "a")
	f(` { "text" : "a" , "stream" : "\u0073" } `+"\r\n", "a")
	f(`{"text":"a"}`+"\n", "a")
	f(`{"text":"a","stream":null}`, "a")
	f(`{"text":"a","stream":"S"}`+"\n", "")
	f(`{"text":"a","stream":"ss"}`+"\n", "")
	f(`{"text":"a","stream":`+quote(strings.Repeat("s", 200))+`}`+"\n", "")
	f(`{"text":"a\n\"b","event":1}`+"\n", "a\n\"b")
	f(`{"text":7,"event":{"k": [1, "x y"]}}`+"\n", `{"k":[1,"x y"]}`)
	f(`{"event":"e"}`+"\n", `"e"`)
	f(`{"event": null, "n": 1}`+"\n", `{"event": null, "n": 1}`)
	f("[1]\nnull\nnot json\n{\"a\":\xff}\n{\"text\":\"torn", "")
	m.write("base/work/memory/a_b.jsonl", `{"stream":"a b","text":"1"}`+"\n"+`{"stream":"a_b","text":"2"}`+"\n")
	m.texts(`"stream":"a/b","rerank":""`, "2|1")
}

func TestMemoryQueryTimes(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_W_EMB", "0")
	f := func(ts string, want int64, score float64) {
		t.Helper()
		m.write("base/work/memory/s.jsonl", `{"ts_ms":`+ts+`,"text":"x"}`)
		if x := m.ask(`"stream":"s"`)[0]; x.TS != want || math.Abs(x.Score-score) > 1e-6 {
			t.Errorf("%s: got %d with score %v, want %d, %v", ts, x.TS, x.Score, want, score)
		}
	}
	f("1700000000000", testNow, 0.1)
	f("1699978400000", testNow-21600000, 0.1*math.Exp(-1))
	f("1700000000000.9", testNow, 0.1)
	f("1.7e12", testNow, 0.1)
	f("1800000000000", 1800000000000, 0.1) // not from the future
	f("-9223372036854775808", math.MinInt64, 0)
	f("1e300", 0, 0)
	f(`"1700000000000"`, 0, 0)
}

func TestMemoryQueryBounds(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_W_EMB", "0", "MACHINA_MEMORY_W_RECENCY", "0")
	var text strings.Builder
	for i := range 25000 {
		fmt.Fprintf(&text, `{"text":"%d"}`+"\n", i)
	}
	m.write("base/work/memory/s.jsonl", text.String())
	f := func(members string, want int) {
		t.Helper()
		got := m.ask(`"stream":"s",` + members)
		if len(got) != want || got[0].Text != "24999" || got[len(got)-1].Text != fmt.Sprint(25000-want) {
			t.Errorf("%s: got %d matches, want %d", members, len(got), want)
		}
	}
	f(`"rerank":"no"`, 10)
	f(`"rerank":"no","top_k":0`, 1)
	f(`"rerank":"no","top_k":50`, 50)
	f(`"rerank":"no","top_k":51`, 50)
	f(`"rerank":"no","top_k":50,"max_entries":9`, 10)
	f(`"rerank":"no","top_k":50,"max_entries":11`, 11)
	f(`"rerank":"no","top_k":50,"candidate_k":1`, 50)

	bounds := func(members string, want query) {
		t.Helper()
		q, err := readQuery([]byte(`{`+members+`}`), Weights{})
		if q.stream = ""; err != nil || *q != want {
			t.Errorf("%s: got %+v %v, want %+v", members, *q, err, want)
		}
	}
	d := query{topK: 10, candidates: 100, maxEntries: 2000, maxBytes: 2 << 20, maxFiles: 4, mmr: true, lambda: 0.72, dim: 256}
	with := func(change func(q *query)) query {
		q := d
		change(&q)
		return q
	}
	bounds(``, d)
	bounds(`"rerank":5,"debug":1,"mmr_lambda":"x","embed_dim":1.5`, d)
	bounds(`"max_entries":20001,"max_bytes":67108865,"max_files":17,"embed_dim":1025,"candidate_k":501,"mmr_lambda":1.01,"debug":true`,
		query{topK: 10, candidates: 500, maxEntries: 20000, maxBytes: 64 << 20, maxFiles: 16, mmr: true, lambda: 1, dim: 1024, debug: true})
	bounds(`"max_entries":9,"max_bytes":4095,"max_files":0,"embed_dim":15,"candidate_k":9,"mmr_lambda":-1`,
		query{topK: 10, candidates: 10, maxEntries: 10, maxBytes: 4096, maxFiles: 1, mmr: true, lambda: 0, dim: 16})
	bounds(`"mmr_lambda":1e999`, d)
	bounds(`"top_k":1`, with(func(q *query) { q.topK, q.candidates = 1, 40 }))
	bounds(`"top_k":50`, with(func(q *query) { q.topK, q.candidates = 50, 200 }))
	bounds(`"rerank":"none"`, with(func(q *query) { q.mmr, q.candidates = false, 50 }))
	bounds(`"rerank":"none","top_k":1`, with(func(q *query) { q.mmr, q.topK, q.candidates = false, 1, 20 }))
	bounds(`"rerank":"none","top_k":50`, with(func(q *query) { q.mmr, q.topK, q.candidates = false, 50, 200 }))
}

// TestMemoryQueryFiles: rotated files count from the newest, and max_bytes is for all of them
// together.
func TestMemoryQueryFiles(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_W_EMB", "0", "MACHINA_MEMORY_W_RECENCY", "0")
	file := func(name, text string) { m.write("base/work/memory/s.jsonl"+name, `{"text":"`+text+`"}`+"\n") }
	file("", "now")
	for i := range 20 {
		file(fmt.Sprintf(".%d.rotated", 100+i), fmt.Sprint("r", i))
	}
	file(".9.rotated", "oldest")
	for _, name := range []string{".x.rotated", ".07.rotated", ".-1.rotated", ".120.rotated.x", ".120", "..rotated", ".99999999999999999999.rotated"} {
		file(name, "none of them")
	}
	m.link("s.jsonl", "base/work/memory/s.jsonl.5.rotated")
	m.texts(`"stream":"s","rerank":""`, "now|r19|r18|r17")
	m.texts(`"stream":"s","rerank":"","max_files":1`, "now")
	m.texts(`"stream":"s","rerank":"","max_files":16,"top_k":50`, "now|r19|r18|r17|r16|r15|r14|r13|r12|r11|r10|r9|r8|r7|r6|r5")
	m.fail("MEMORY.QUERY", `{"stream":"s","mode":"x"}`, "invalid mode")
	if err := os.Remove(m.path("base/work/memory/s.jsonl")); err != nil {
		t.Fatal(err)
	}
	m.texts(`"stream":"s","rerank":"","max_files":2`, "r19|r18")

	line := func(text string, n int) string {
		return `{"text":"` + text + `","x":"` + strings.Repeat("x", n) + `"}` + "\n"
	}
	m.write("base/work/memory/t.jsonl", line("now", 2000))
	m.write("base/work/memory/t.jsonl.2.rotated", line("a", 1000)+line("b", 1000))
	m.write("base/work/memory/t.jsonl.1.rotated", line("c", 10))
	m.texts(`"stream":"t","rerank":"","max_bytes":4096`, "now|b|a|c")
	m.write("base/work/memory/t.jsonl", line("now", 2500))
	m.texts(`"stream":"t","rerank":"","max_bytes":4096`, "now|b")
}

// TestMemoryQueryRotatedMeanwhile: a file that gets its other name while it is read is not read
// twice.
func TestMemoryQueryRotatedMeanwhile(t *testing.T) {
	m := newMemory(t)
	m.write("base/work/memory/s.jsonl", `{"text":"a"}`+"\n")
	d, err := memoryDir(m.env, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	q, _ := readQuery([]byte(`{"stream":"s"}`), Weights{Tau: 1})
	current, err := d.open("s.jsonl", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer current.Close()
	if err = d.rename("s.jsonl", "s.jsonl.1.rotated"); err != nil {
		t.Fatal(err)
	}
	r := reading{query: q, left: 1000}
	if read, err := r.rotated(t.Context(), d, "s.jsonl.1.rotated", current); read || err != nil {
		t.Errorf("got %v, %v", read, err)
	}
	if read, err := r.rotated(t.Context(), d, "s.jsonl.1.rotated", nil); !read || err != nil || len(r.docs) != 1 {
		t.Errorf("got %v, %v", read, err)
	}
}
