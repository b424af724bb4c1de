package builtin

import (
	"os"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// FuzzMemoryFiles: whatever is in the files, readers answer with JSON or an error, and writers go
// on.
func FuzzMemoryFiles(f *testing.F) {
	f.Add([]byte(threeLines), "alpha", byte(0))
	f.Add([]byte("{\"i\":0}\n{\"i\":1,\"te"), "x", byte(7))
	f.Add([]byte(`{"dim":2}`), "\xff", byte(1))
	f.Add([]byte(strings.Repeat("\r\n\n", 40)+"\x00\xff[[[["), "", byte(255))
	f.Add([]byte(`{"ts_ms":-9e18,"stream":null,"event":{"\ud800":[[1e999]]}}`), "s", byte(30))
	m := newMemory(f, "MACHINA_VECDB_DIM", "4")
	f.Fuzz(func(t *testing.T, content []byte, word string, choice byte) {
		m.t, m.ctx = t, t.Context()
		text := string(content)
		m.write("base/work/memory/s.jsonl", text)
		m.write("base/work/memory/s.jsonl.1.rotated", text)
		schema := `{"dim":2}`
		if choice&1 != 0 {
			schema = text
		}
		m.write("base/"+storeDir+schemaFile, schema)
		m.write("base/"+storeDir+embeddingsFile, text)
		m.write("base/"+storeDir+metaFile, text)
		word = quote(word)
		m.sane("MEMORY.SEARCH", `{"stream":"s","contains":`+word+`}`)
		m.sane("MEMORY.QUERY", `{"stream":"s","debug":true,"query":`+word+`,"rerank":`+[]string{`"mmr"`, `"no"`}[choice>>1&1]+`}`)
		m.sane("VECDB.QUERY", `{"query":`+word+`}`)
		m.sane("VECDB.UPSERT", `{"text":`+word+`}`)
		m.sane("MEMORY.APPEND", `{"stream":"s","event":`+word+`}`)
		m.sane("VECDB.QUERY", `{"query":`+word+`}`)
		if got := m.content("base/work/memory/s.jsonl"); !strings.HasPrefix(got, text) || !strings.HasSuffix(got, "\n") {
			t.Errorf("appending to %q gave %q", text, got)
		}
		if name := m.path("base/" + storeDir + "." + schemaFile + ".new"); fileExists(name) {
			t.Errorf("%s is left", name)
		}
	})
}

func fileExists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// sane wants an answer that can be sent.
func (m *memory) sane(name, input string) {
	m.t.Helper()
	r := m.call(name, input)
	switch {
	case (r.Status() == tool.OK) != (r.ErrorText() == ""):
		m.t.Errorf("%s %s: status %v with error %q", name, input, r.Status(), r.ErrorText())
	case r.Status() == tool.OK && !jsonx.Check(r.Output, maxDepth).OK():
		m.t.Errorf("%s %s: output is not JSON: %.300q", name, input, r.Output)
	}
}

// FuzzMemoryInput: whatever object a caller sends, each tool answers with JSON or an error.
func FuzzMemoryInput(f *testing.F) {
	for _, seed := range []string{
		`{"stream":"s","text":"x","event":{"a":1},"meta":{"k":[]}}`,
		`{"query":"x y","top_k":-1e9,"mode":"bm25","mmr_lambda":1e308,"debug":true}`,
		`{"text":"hi","dim":1e18,"normalize":false,"max_bytes":0.5,"contains":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	m := newMemory(f, "MACHINA_MEMORY_ROTATE_BYTES", "5000", "MACHINA_VECDB_DIM", "4")
	f.Fuzz(func(t *testing.T, input []byte) {
		if !jsonx.Check(input, maxDepth).OK() || jsonx.ValueOf(input).Kind != jsonx.ObjectStart || len(input) > 4096 {
			t.Skip("not what a tool is given")
		}
		m.t, m.ctx = t, t.Context()
		for _, name := range []string{"MEMORY.APPEND", "MEMORY.SEARCH", "MEMORY.QUERY", "EMBED.TEXT", "VECDB.UPSERT", "VECDB.QUERY"} {
			m.sane(name, string(input))
		}
		if err := os.RemoveAll(m.path("base/work")); err != nil {
			t.Fatal(err)
		}
	})
}
