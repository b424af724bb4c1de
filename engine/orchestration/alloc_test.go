//go:build !race

package orchestration

import (
	"runtime"
	"strings"
	"testing"
)

func TestNextTakesNothing(t *testing.T) {
	for _, n := range []int{1, fewConditions, 100} {
		p := mustParse(t, stagesOf(`{"name":"s0","routing":[`+repeat(n, `{"condition":"c%d","value":"text","target":"s1"}`)+
			`,{"condition":"c0","value":2.5,"target":"s1"},{"condition":"c0","value":null,"target":"s1"}]},{"name":"s1"}`))
		structured := mustParse(t, stagesOf(`{"name":"s0","routing":[{"condition":"c0","value":"text","target":"s1"},{"condition":"x","value":[1],"target":"s1"}]},{"name":"s1"}`))
		for _, text := range []string{`{}`, `{"c0":"text"}`, `{"c0":2.5}`, `{"c0":null}`, `{"zz":[1,{"a":2}],"c0":7}`, `{"c0":[1,2,3],"c1":{"a":"b"}}`} {
			output := pack(text)
			name := []byte("s1")
			if got := testing.AllocsPerRun(100, func() {
				p.Next(0, true, output)
				structured.Next(0, true, output)
				p.edge(0, p.find(name))
			}); got != 0 {
				t.Errorf("%d conditions, %s: %v allocations", n, text, got)
			}
		}
	}
}

// spent returns the bytes f allocates.
func spent(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestComparingTakesLittle: what a comparison holds meanwhile is bounded by the rule's value, not
// by the output's.
func TestComparingTakesLittle(t *testing.T) {
	f := func(rule, output string) {
		t.Helper()
		p, refusal := ParsePipeline(withRule(pack(rule)))
		if refusal != "" {
			t.Fatal(refusal)
		}
		raw := withMember(pack(output))
		if got := spent(func() { p.Next(0, true, raw) }); got > 1<<16 {
			t.Errorf("%.40s against %d bytes: %d bytes allocated", rule, len(raw), got)
		}
	}
	const many = 100000
	f(`{"a":1}`, `{`+repeat(many, `"a":%d`)+`}`)
	f(`{"a":1}`, `{`+repeat(many, `"k%d":1`)+`}`)
	f(`[1]`, `[`+repeat(many, `%d`)+`]`)
	f(`{"a":[1]}`, `{`+repeat(many, `"a":[%d]`)+`,"a":[1]}`)
	f(`{"a":{"a":1}}`, strings.Repeat(`{"a":1,"a":`, 400)+`{"a":1}`+strings.Repeat(`}`, 400))
	ones := repeat(50, `"k%d":1`)
	f(`{`+ones+`,"a":{}}`, strings.Repeat(`{`+ones+`,"a":`, 400)+`{}`+strings.Repeat(`}`, 400))
	f(`[{"a":1,"b":2}]`, `[{`+repeat(many/2, `"a":%d,"b":1`)+`}]`)
}

// TestBytes holds the estimate against the heap.
func TestBytes(t *testing.T) {
	f := func(name, text string) {
		t.Helper()
		raw := pack(text)
		n := 10 + 1<<20/len(raw) // enough to drown what else the heap does
		kept := make([]*Pipeline, n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range kept {
			kept[i], _ = ParsePipeline(raw)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held, said := int64(after.HeapAlloc-before.HeapAlloc)/int64(n), kept[0].bytes()
		runtime.KeepAlive(kept)
		if held > 2*said || said > 3*held {
			t.Errorf("%s: holds %d bytes, says %d", name, held, said)
		}
	}
	long := strings.Repeat("x", 1000)
	f("small", stagesOf(`{"name":"a","routing":[{"condition":"c","value":1,"target":"a"}]},{"name":"b"},{"name":"c","agent":"x"}`))
	f("stages", stagesOf(repeat(1000, `{"name":"s%d"}`)))
	f("names", stagesOf(repeat(100, `{"name":"`+long+`%[1]d","agent":"`+long+`y%[1]d"}`)))
	f("rules", stagesOf(`{"name":"a","routing":[`+repeat(5000, `{"condition":"c","value":1,"target":"a"}`)+`]}`))
	f("values", stagesOf(`{"name":"a","routing":[`+repeat(5000, `{"condition":"c","value":"text%d","target":"a"}`)+`]}`))
	f("conditions", stagesOf(`{"name":"a","routing":[`+repeat(1000, `{"condition":"c%d","value":[1,{"a":"b"}],"target":"a"}`)+`]}`))
	f("lists", stagesOf(`{"name":"a","routing":[`+repeat(1000, `{"condition":"c","value":[1,2,3,4,{"a":%d}],"target":"a"}`)+`]}`))
	f("edges", stagesOf(repeat(200, `{"name":"s%d","routing":[`+repeat(50, `{"target":"s%d"}`)+`]}`)))
}
