package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCompact(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		for shift := range 9 { // every place in a word
			pad := strings.Repeat("1", shift)
			if got := string(Compact([]byte(pad + in))); got != pad+want {
				t.Errorf("%q: %q, want %q", pad+in, got, pad+want)
			}
		}
	}
	f(``, ``)
	f(` `, ``)
	f(`{"a": 1, "b": [true, null]}`, `{"a":1,"b":[true,null]}`)
	f("\r\n\t {\n}\n        \n", `{}`)
	f(`"  a  "  :  "  b  "`, `"  a  ":"  b  "`)
	f(`["a\" b", "\\", "\\\" c", 1]`, `["a\" b","\\","\\\" c",1]`)
	f(`{"é": "ü ö", "日本": "語 "}`, `{"é":"ü ö","日本":"語 "}`)
	f(`[1 , 2 ,3 , "      long text with   spaces      " , 4]`, `[1,2,3,"      long text with   spaces      ",4]`)
	f(`"\`, `"\`) // not JSON, but no reason to panic
}

// TestCompactIsOfTheStandard compares with encoding/json.
func TestCompactIsOfTheStandard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.SampledFrom([]string{`"a"`, `"\""`, `"\\"`, `"a b, c: [d]"`, `1`, `-1.5e10`, `true`, `[]`, `"é \u0020"`, `{"k" : 1}`, `""`}), 1, 20).Draw(t, "tokens")
		space := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", " ", "\n", "  \t", "            "}), 40, 40).Draw(t, "space")
		var b strings.Builder
		b.WriteString("[")
		for i, token := range tokens {
			if i > 0 {
				b.WriteString(space[2*i] + ",")
			}
			b.WriteString(space[2*i+1] + token)
		}
		b.WriteString("]")
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(b.String())); err != nil {
			t.Fatal(err)
		}
		if got := Compact([]byte(b.String())); string(got) != want.String() {
			t.Fatalf("%q\ngot  %q\nwant %q", b.String(), got, want.String())
		}
	})
}

// FuzzCompact compares with encoding/json too, on any text.
func FuzzCompact(f *testing.F) {
	f.Add([]byte(" {\"a\" : [1, 2e5 , \"x \\\\\" ] } "))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !Check(text, MaxDepth).OK() {
			Compact(text)
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Fatalf("%q passes Check, and encoding/json says %v", text, err)
		}
		if got := Compact(bytes.Clone(text)); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("Compact(%q) = %q, want %q", text, got, want.Bytes())
		}
	})
}
