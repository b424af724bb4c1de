package jsonx

import (
	"strings"
	"testing"
)

// Question: what do texts of the usual kinds cost on their way in and out: a word, JSON in a
// string, and a long text without escapes?
func BenchmarkText(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"word", "test_plugin"}, {"json", `{"echo":{"x":1,"name":"a"}}`}, {"long", strings.Repeat("plain text ", 400)},
	} {
		quoted := AppendString(nil, c.text)
		raw, out := quoted[1:len(quoted)-1], make([]byte, 0, 2*len(c.text)+16)
		b.Run(c.name+"/append", func(b *testing.B) {
			for b.Loop() {
				out = AppendString(out[:0], c.text)
			}
		})
		b.Run(c.name+"/unescape", func(b *testing.B) {
			for b.Loop() {
				out = AppendUnescaped(out[:0], raw)
			}
		})
	}
}
