package jsonx

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var corpus = []string{
	``, ` `, `0`, `-0.5e+10`, `"a"`, `"\ud834\udd1e\ud834\u00e9"`, `[1,[2,{"a":null}],{}]`, `{"a":{"b":[true,false]},"a":1}`,
	"\"\xff\"", "\"h\u00e9\u4e16\"", `{"a" : 1 , "b" : [ ] }`, `["\\\"","\u0000"]`, "[" + strings.Repeat("[", 600), `1e400`, `{bad`,
	strings.Repeat("[", 512) + strings.Repeat("]", 512), `[18446744073709551615,-9223372036854775808]`, "nul", "\ufeff{}",
}

func FuzzCheck(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		compareValid(t, b)
		p, deep := Check(b, MaxDepth), Check(b, 3)
		if p.Kind == InvalidUTF8 && utf8.Valid(b) {
			t.Fatalf("%q is UTF-8, Check says %v", b, p)
		}
		if p.OK() && !utf8.Valid(b) {
			t.Fatalf("Check accepts %q, which is not UTF-8", b)
		}
		if deep.OK() && !p.OK() || !deep.OK() && deep != p && deep.Kind != TooDeep {
			t.Fatalf("%q: limit 3 says %v, limit %d says %v", b, deep, MaxDepth, p)
		}
	})
}

func FuzzWalk(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var w Walker
		if Check(b, MaxDepth).OK() {
			compareWalk(t, &w, b)
			return
		}
		// Text that was not checked: the walk must end, and nothing may panic.
		w.Start(b)
		for n := 0; ; n++ {
			kind, raw := w.Step()
			if kind == End {
				break
			}
			if n > len(b) {
				t.Fatalf("%q: more tokens than bytes", b)
			}
			AppendUnescaped(nil, raw)
			ParseNumber(raw)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, text := range corpus {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := AppendString(nil, s)
		if p := Check(out, 0); !p.OK() {
			t.Fatalf("AppendString(%q) = %q: %v", s, out, p)
		}
		if got, want := string(AppendUnescaped(nil, out[1:len(out)-1])), strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && got != want {
			t.Fatalf("round trip of %q = %q", s, got)
		}
	})
}
