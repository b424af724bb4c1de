package process

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestSameKey(t *testing.T) {
	f := func(key, name string, want bool) {
		t.Helper()
		if got := sameKey([]byte(key), name); got != want {
			t.Errorf("sameKey(%s, %s) = %v", key, name, got)
		}
	}
	f("code", "code", true)
	f("Code", "code", false)
	f("cod", "code", false)
	f(`\u0063\u006f\u0064\u0065`, "code", true)
	f(`\u0063\u006F\u0064\u0065x`, "code", false)
	f(`cod\"`, "code", false)
}

// TestCompactIsTheStandardOne compares with encoding/json over generated texts with space everywhere.
func TestCompactIsTheStandardOne(t *testing.T) {
	space := rapid.SampledFrom([]string{"", "", " ", "\n", "\t\r\n "})
	scalar := rapid.SampledFrom([]string{`1`, `"a b"`, `"\\"`, `"\" "`, `-2.50e+3`, `null`, `true`, `"\n \u0020"`, `{}`, `[ ]`})
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		pad := func(s string) { b.WriteString(space.Draw(t, "space") + s) }
		pad("{")
		for i := range rapid.IntRange(0, 5).Draw(t, "members") {
			if i > 0 {
				pad(",")
			}
			pad(`"k \\ "`)
			pad(":")
			pad("[")
			pad(scalar.Draw(t, "scalar"))
			pad("]")
		}
		pad("}")
		pad("")
		var want bytes.Buffer
		if err := json.Compact(&want, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if got := compact(b.Bytes()); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s, want %s", got, want.Bytes())
		}
	})
}

func TestCompactEndsOnAnything(t *testing.T) {
	for _, s := range []string{"", `"`, `"\`, `"abc`, `\`} {
		if got := compact([]byte(s)); string(got) != s {
			t.Errorf("compact(%q) = %q", s, got)
		}
	}
}
