package bus

import (
	"fmt"
	"strings"
	"testing"
)

// Question: what does an event cost with as many patterns as there may be, of the most tokens: none
// matches until its last token, half of each subscription does, or each belongs to another subject?

func BenchmarkManyPatterns(b *testing.B) {
	const streams = 8
	typ := []byte(strings.Repeat("x.", MaxPatternTokens-1) + "x")
	f := func(name string, pattern func(i int) string) {
		b.Run(name, func(b *testing.B) {
			bus := New(Config{StreamBufferEvents: 1})
			defer bus.Close()
			for range streams {
				var patterns []string
				for i := range DefaultPatterns / streams {
					patterns = append(patterns, pattern(i))
				}
				if _, err := bus.subscribePatterns(&port{}, nil, patterns, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				m := bus.NewMessage(1)
				m.Body = append(m.Body, 'x')
				bus.Publish(typ, m)
			}
		})
	}
	miss := func(i int) string { return strings.Repeat("*.", MaxPatternTokens-1) + fmt.Sprint(i) }
	f("none", miss)
	f("subjects", func(i int) string { return fmt.Sprintf("x.%d.>", i) })
	f("mixed", func(i int) string { // no two have a prefix in common that is longer than eight tokens
		tokens := strings.Split(miss(i), ".")
		for bit := range 8 {
			if i>>bit&1 == 1 {
				tokens[bit] = "x"
			}
		}
		return strings.Join(tokens, ".")
	})
	f("half", func(i int) string {
		if i < DefaultPatterns/streams/2 {
			return miss(i)
		}
		tokens := strings.Split(strings.Repeat("*.", MaxPatternTokens-1)+">", ".")
		tokens[1] = "x" // behind those that do not match
		for bit := range 8 {
			if i>>bit&1 == 1 {
				tokens[2+bit] = "x"
			}
		}
		return strings.Join(tokens, ".")
	})
}
