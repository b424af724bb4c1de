package builtin

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEmbedText(t *testing.T) {
	m := newMemory(t)
	const four = `[-0.170019,0.094569,-0.782131,0.591964]`
	const eight = `[-0.136619,0.075991,-0.628485,0.475675,-0.150043,-0.554390,-0.136619,0.075991]`
	m.ok("EMBED.TEXT", `{"text":"hi","dim":4}`, `{"provider":"hash","dim":4,"embedding":`+four+`}`)
	m.ok("EMBED.TEXT", `{"text":"hi","dim":8.0,"normalize":true}`, `{"provider":"hash","dim":8,"embedding":`+eight+`}`)
	m.ok("EMBED.TEXT", `{"text":"hi","dim":1}`, `{"provider":"hash","dim":1,"embedding":[-1.000000]}`)
	m.ok("EMBED.TEXT", `{"text":"hi","dim":4,"normalize":false}`, `{"provider":"hash","dim":4,"embedding":[-0.214373,0.119240,-0.986173,0.746395]}`)
	m.fail("EMBED.TEXT", `{}`, "missing text")
	m.fail("EMBED.TEXT", `{"text":""}`, "missing text")
	m.fail("EMBED.TEXT", `{"text":["hi"]}`, "missing text")
	f := func(dim string, want int) {
		t.Helper()
		out := string(m.call("EMBED.TEXT", `{"text":"hi"`+dim+`}`).Output)
		if got := strings.Count(out, ",") - 1; got != want || !strings.Contains(out, `"dim":`+string(appendNumber(nil, float64(want)))+`,`) {
			t.Errorf("%s: got %d components: %.60s", dim, got, out)
		}
	}
	f(``, 384)
	f(`,"dim":0`, 384)
	f(`,"dim":-1`, 384)
	f(`,"dim":2.5`, 384)
	f(`,"dim":"8"`, 384)
	f(`,"dim":1024`, 1024)
	f(`,"dim":1025`, 1024)
	f(`,"dim":1e18`, 1024)
}

// TestDotHashed: the short way gives what the vectors give.
func TestDotHashed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		dim := rapid.IntRange(1, 40).Draw(t, "dim")
		x, y := divideByNorm(hashComponents(a), dim), divideByNorm(hashComponents([]byte(b)), dim)
		want, norm := 0.0, 0.0
		for i, v := range embedding(a, dim) {
			want += float64(v) * float64(embedding(b, dim)[i])
			norm += float64(v) * float64(v)
		}
		if got := dotHashed(&x, &y, dim); math.Abs(got-want) > 1e-9 || math.Abs(norm-1) > 1e-6 {
			t.Fatalf("got %v, want %v; norm %v", got, want, norm)
		}
	})
}

// TestUnitOf: the ends and the middle of the range.
func TestUnitOf(t *testing.T) {
	if unitOf(0) != -1 || unitOf(math.MaxUint32) != 1 || math.Abs(float64(unitOf(1<<31))) > 1e-9 {
		t.Errorf("got %v %v %v", unitOf(0), unitOf(math.MaxUint32), unitOf(1<<31))
	}
}

// BenchmarkEmbedText: may the tool run on an event loop (toolhost §2.3)?
func BenchmarkEmbedText(b *testing.B) {
	m := newMemory(b)
	for name, input := range map[string]string{
		"small": `{"text":"hello"}`,
		"most":  `{"dim":1024,"text":"` + strings.Repeat("x", fastInput-24) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			call, run := callOf("AID.EMBED.TEXT.v1", []byte(input), nil), m.byID["AID.EMBED.TEXT.v1"]
			b.ReportAllocs()
			for b.Loop() {
				run.Run(b.Context(), call)
			}
		})
	}
}
