package questions

// Question: what does routing add to a report, by kind of rule and by what lies beside the member
// it asks for?

import (
	"strings"
	"testing"

	"trunkline/engine/orchestration"
)

func BenchmarkPipelineNext(b *testing.B) {
	var all []question
	f := func(name, rules, output string) {
		all = append(all, question{name: name, prepare: func(tb testing.TB) work {
			p, refusal := orchestration.ParsePipeline(encode(tb, stages(`{"name":"first","routing":[`+rules+`]},{"name":"s"}`)))
			if refusal != "" {
				tb.Fatal(refusal)
			}
			raw := encode(tb, output)
			if next := p.Next(0, true, raw); next != 1 {
				tb.Fatalf("the rules lead to stage %d", next)
			}
			return work{run: func() { p.Next(0, true, raw) }}
		}})
	}
	const scalar = `{"condition":"verdict","value":"approved","target":"s"}`
	const small = `{"text":"some words","verdict":"approved","score":0.5}`
	f("always", `{"target":"s"}`, `{"verdict":"approved"}`)
	f("scalar", scalar, small)
	f("scalar-last-of-8", numbered(7, `{"condition":"c%d","value":1,"target":"s"}`)+","+scalar, small)
	f("scalar-last-of-100", numbered(99, `{"condition":"c%d","value":1,"target":"s"}`)+","+scalar, small)
	f("scalar-64KiB-beside", scalar, `{"text":"`+strings.Repeat("x", 64<<10)+`","verdict":"approved"}`)
	f("map", `{"condition":"v","value":{"a":[1,2],"b":"x"},"target":"s"}`, `{"v":{"b":"x","a":[1,2]}}`)
	f("hostile-map-1MiB", `{"condition":"v","value":{"a":{"a":{"a":1}}},"target":"first"},{"target":"s"}`,
		`{"v":`+strings.Repeat(`{"a":1,"a":`, 300)+`{`+numbered(350_000, `"a":%d`)+`}`+strings.Repeat(`}`, 300)+`}`)
	measure(b, all)
}

// stages is a pipeline of the given stages.
func stages(list string) string { return `{"name":"n","agents":[` + list + `]}` }
