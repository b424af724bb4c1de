package orchestration

import (
	"bytes"
	"slices"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// sound reports whether raw is one value that the Scanner takes.
func sound(raw []byte) bool {
	var sc mpack.Scanner
	var v [1]mpack.Value
	body := withMember(raw)
	next, p := sc.ParseFields(body, 0, mpack.Fields("v"), v[:])
	return p == mpack.NoProblem && next == len(body)
}

// addConfigs seeds f with configurations, good ones and bad ones, as as() writes them.
func addConfigs(f *testing.F, as func(text string) []byte) {
	for _, text := range []string{
		`{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[{"condition":null,"value":null,"target":"s2"}]},{"name":"s2","agent":"a2","routing":[]}],"max_iterations":5,"max_llm_calls":10,"max_agent_hops":10,"edge_limits":[]}`,
		`{"name":"n","agents":[{"name":"a","stage_order":2,"routing_rules":[{"condition":"k","value":{"x":[1,2.5,"t",{"y":null}]},"target":"end"}],"default_next":"end"},{"name":"end","error_next":"a"}],"edge_limits":[{"from_stage":"a","to_stage":"end","max_count":0}]}`,
		`{"name":"n","agents":[{"name":"a"},{"name":"a"}]}`,
		`{"name":"n","agents":[{"name":"a","routing":[{"target":"zz"}]}],"max_iterations":-1}`,
	} {
		f.Add(as(text))
	}
}

// checkConfig parses a configuration twice and walks what comes of it; routing over the
// configuration itself must find a way too.
func checkConfig(t *testing.T, raw []byte) {
	lent := slices.Clone(raw)
	p, refusal := ParsePipeline(lent)
	if (p == nil) == (refusal == "") || len(refusal) > 4096 {
		t.Fatalf("pipeline %v, refusal of %d bytes %q", p != nil, len(refusal), refusal)
	}
	if p == nil {
		return
	}
	for i := range lent {
		lent[i] = 0xcc
	}
	checkPipeline(t, p)
	again, _ := ParsePipeline(raw)
	if again == nil || !bytes.Equal(p.appendStageOrder(nil), again.appendStageOrder(nil)) || p.bytes() != again.bytes() {
		t.Fatal("parsed again, it is another pipeline")
	}
	for i := range len(p.stages) {
		if a, b := p.Next(i, true, raw), again.Next(i, true, raw); a != b || a < end || a >= len(p.stages) {
			t.Fatalf("stage %d leads to %d and to %d of %d", i, a, b, len(p.stages))
		}
	}
}

// FuzzPipeline takes MessagePack, whether the Scanner would let it through or not: neither may
// crash.
func FuzzPipeline(f *testing.F) {
	addConfigs(f, pack)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if sound(raw) {
			checkConfig(t, raw)
		} else {
			ParsePipeline(raw)
		}
	})
}

// FuzzPipelineJSON takes the same as JSON text.
func FuzzPipelineJSON(f *testing.F) {
	addConfigs(f, func(text string) []byte { return []byte(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		if !jsonx.Check(text, 512).OK() {
			return
		}
		raw := transcode.AppendMsgPack(nil, text)
		if !sound(raw) && len(raw) < 512 {
			t.Fatalf("%q is %x", text, raw)
		}
		checkConfig(t, raw)
	})
}

// FuzzEqual holds the comparison of a rule's value with an output's to another decoder and the
// fractions of math/big.
func FuzzEqual(f *testing.F) {
	for _, pair := range [][2]string{{`1`, `1.0`}, {`{"a":1,"b":[null,true]}`, `{"b":[null,true],"a":2,"a":1}`}, {`[[],{}]`, `[[],{},"x"]`}} {
		f.Add(pack(pair[0]), pack(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !sound(a) || !sound(b) || len(a) > 1<<16 {
			return
		}
		if got, want := equal(t, a, b), canonOf(t, a) == canonOf(t, b); got != want {
			t.Fatalf("%x = %x: %v", a, b, got)
		}
	})
}
