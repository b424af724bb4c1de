package questions

// Question: what does a session's start pay for its configuration, and what does the largest one
// cost?

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/orchestration"
)

func BenchmarkPipelineParse(b *testing.B) {
	var all []question
	f := func(name, text string) {
		all = append(all, question{name: name, prepare: func(tb testing.TB) work {
			raw := encode(tb, text)
			if _, refusal := orchestration.ParsePipeline(raw); refusal != "" {
				tb.Fatal(refusal)
			}
			return work{run: func() { _, _ = orchestration.ParsePipeline(raw) }, bytes: len(raw)}
		}})
	}
	f("stages=6", stages(numbered(6, `{"name":"s%[1]d","agent":"a%[1]d","routing":[{"condition":"verdict","value":"again","target":"s0"}],"default_next":"end"}`)))
	f("stages=1024", stages(numbered(1024, `{"name":"s%[1]d","agent":"a%[1]d","default_next":"end"}`)))
	f("rules=65536", stages(`{"name":"s","routing":[`+numbered(orchestration.MaxRules, `{"condition":"c","value":%d,"target":"s"}`)+`]}`))
	f("members=65536", stages(fmt.Sprintf(`{"name":"s","routing":[{"condition":"c","value":[%s],"target":"s"}]}`, numbered(orchestration.MaxRuleMembers, `%d`))))
	measure(b, all)
}

// numbered joins n texts made of a format with the numbers from 0.
func numbered(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}
