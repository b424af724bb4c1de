package builtin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
)

// FuzzTools runs every tool with any JSON object: nothing panics, and nothing outside the root is
// read or changed.
func FuzzTools(f *testing.F) {
	b := newBench(f)
	b.link("../outside", "base/out")
	b.link("../../outside", "base/sub/out")
	b.link("sub", "base/in")
	b.write("base/work/x", "x")
	b.link("../../outside", "base/work/out")
	tools := Builtins(b.env)
	for _, input := range []string{
		`{}`, `{"path":"a.txt","max_bytes":3,"offset":1}`, `{"path":"out/secret"}`, `{"path":"sub/../../outside/secret"}`, `{"path":"in/b.txt"}`,
		`{"path":"x","content":"y","overwrite":true,"mkdirs":false}`, `{"path":"out/new","content":"y"}`, `{"path":"/etc/passwd","content":""}`,
		`{"input_path":"a.txt","pattern":"l","max_rows":1e2}`, `{"text":"x","algo":"fnv1a64","path":"in/../out/secret"}`,
		`{"stream":"../../../outside/x","text":"x","event":{"a":[1]}}`, `{"stream":"s","query":"x","mode":"bm25","top_k":3,"debug":true}`,
		`{"text":"x","dim":8,"normalize":false}`, `{"stream":"v","text":"x","meta":{}}`, `{"path":"\u0000"}`, `{"path":"./././/"}`,
	} {
		for i := range tools {
			f.Add(uint8(i), []byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, input []byte) {
		// Only what the server lets through reaches a tool (toolhost §3.1).
		if !jsonx.Check(input, maxDepth).OK() || jsonx.ValueOf(input).Kind != jsonx.ObjectStart {
			return
		}
		b.t = t
		aid := tools[int(which)%len(tools)].AID
		var s sessionstate.State
		s.Set(0, sessionstate.Artifact{Content: string(input)})
		r := b.run(aid, string(input), &s)
		b.wantNoSecret(aid, input, r.Output)
		b.wantUntouched()
	})
}

// FuzzPaths gives the tools that know files any path.
func FuzzPaths(f *testing.F) {
	b := newBench(f)
	b.link("../outside", "base/out")
	b.link("sub/../in", "base/in")
	b.link(b.path("base/sub"), "base/abs")
	b.write("base/work/d/x", "x")
	b.link("../../outside", "base/work/out")
	for _, path := range []string{"a.txt", "out/secret", "abs/../abs/b.txt", "../base/a.txt", "//", "in/x", "work/x", "out\x00/../a", "d/x/", "./out/./../out/new"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		b.t = t
		for _, prefix := range []string{"", b.path("base") + "/", b.path("base/work") + "/"} {
			input := []byte(`{"pattern":"e","content":"c","overwrite":true,"path":` + quote(prefix+path) + `,"input_path":` + quote(prefix+path) + `}`)
			for _, aid := range []string{read, scanAID, "AID.HASH.DIGEST.v1", write} {
				b.wantNoSecret(aid, input, b.run(aid, string(input), new(sessionstate.State)).Output)
			}
		}
		b.wantUntouched()
		entries, err := os.ReadDir(b.dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("%q: beside the root are %v, %v", path, entries, err)
		}
	})
}

// wantNoSecret checks that out has nothing of what is outside, neither as it is nor as FILE.READ
// shows it, nor its digest.
func (b *bench) wantNoSecret(aid string, input, out []byte) {
	b.t.Helper()
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(secret)))
	if bytes.Contains(input, []byte(secret)) {
		return
	}
	for _, s := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), digest} {
		if bytes.Contains(out, []byte(s)) {
			b.t.Errorf("%s %q: it got out: %q", aid, input, out)
		}
	}
}
