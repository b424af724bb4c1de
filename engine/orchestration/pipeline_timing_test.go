package orchestration

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkNext answers what routing adds to a report: by kind of rule, and by what lies beside the member it asks for.
func BenchmarkNext(b *testing.B) {
	f := func(name, rules, output string) {
		p := mustParse(b, stagesOf(`{"name":"s","routing":[`+rules+`]}`))
		raw := pack(output)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				p.Next(0, true, raw)
			}
		})
	}
	scalar := `{"condition":"verdict","value":"approved","target":"s"}`
	f("always", `{"target":"s"}`, `{"verdict":"approved"}`)
	f("scalar", scalar, `{"text":"some words","verdict":"approved","score":0.5}`)
	f("scalar-last-of-8", repeat(7, `{"condition":"c%d","value":1,"target":"s"}`)+","+scalar, `{"text":"some words","verdict":"approved","score":0.5}`)
	f("scalar-last-of-100", repeat(99, `{"condition":"c%d","value":1,"target":"s"}`)+","+scalar, `{"text":"some words","verdict":"approved","score":0.5}`)
	f("scalar-64KiB-beside", scalar, `{"text":"`+strings.Repeat("x", 64<<10)+`","verdict":"approved"}`)
	f("map", `{"condition":"v","value":{"a":[1,2],"b":"x"},"target":"s"}`, `{"v":{"b":"x","a":[1,2]}}`)
	f("hostile-map-1MiB", `{"condition":"v","value":{"a":{"a":{"a":1}}},"target":"s"}`,
		`{"v":`+strings.Repeat(`{"a":1,"a":`, 300)+`{`+repeat(350000, `"a":%[1]d`)+`}`+strings.Repeat(`}`, 300)+`}`)
}

// BenchmarkParsePipeline answers what a session's start pays for its configuration, and what the largest one costs.
func BenchmarkParsePipeline(b *testing.B) {
	f := func(name, text string) {
		raw := pack(text)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, refusal := ParsePipeline(raw); refusal != "" {
					b.Fatal(refusal)
				}
			}
		})
	}
	f("6-stages", stagesOf(repeat(6, `{"name":"s%[1]d","agent":"a%[1]d","routing":[{"condition":"verdict","value":"again","target":"s0"}],"default_next":"end"}`)))
	f("1024-stages", stagesOf(repeat(1024, `{"name":"s%[1]d","agent":"a%[1]d","default_next":"end"}`)))
	f("65536-rules", stagesOf(`{"name":"s","routing":[`+repeat(MaxRules, `{"condition":"c","value":%d,"target":"s"}`)+`]}`))
	f("65536-members", stagesOf(fmt.Sprintf(`{"name":"s","routing":[{"condition":"c","value":[%s],"target":"s"}]}`, repeat(MaxRuleMembers, `%d`))))
}
