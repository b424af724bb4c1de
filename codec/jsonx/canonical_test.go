package jsonx

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// canonical returns what c writes for text.
func canonical(c *Canonical, text []byte) string {
	var out bytes.Buffer
	c.Start(&out)
	c.Value(text)
	c.End()
	return out.String()
}

// referenceCanonical is the form, made of what the standard library decodes.
func referenceCanonical(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	return formatCanonical(v)
}

func formatCanonical(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, formatText(k)+":"+formatCanonical(v[k]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, formatCanonical(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return formatText(v)
	case json.Number:
		return formatNumber(v.String())
	}
	return strings.ReplaceAll(fmt.Sprint(v), "<nil>", "null")
}

func formatText(s string) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}
	var out strings.Builder
	for _, r := range s {
		switch escape, ok := short[r]; {
		case ok:
			out.WriteString(escape)
		case r < 0x20:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return `"` + out.String() + `"`
}

func formatNumber(s string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n, _ := new(big.Int).SetString(whole+fraction, 10)
	e, ok := new(big.Int).SetString(strings.TrimPrefix(exponent, "+"), 10)
	if !ok {
		e = new(big.Int)
	}
	e.Sub(e, big.NewInt(int64(len(fraction))))
	if n.Sign() == 0 {
		return "0"
	}
	for ten := big.NewInt(10); ; {
		q, r := new(big.Int).QuoRem(n, ten, new(big.Int))
		if r.Sign() != 0 {
			break
		}
		n = q
		e.Add(e, big.NewInt(1))
	}
	if e.Sign() == 0 {
		return n.String()
	}
	return n.String() + "e" + e.String()
}

func TestCanonical(t *testing.T) {
	var c Canonical
	f := func(text, want string) {
		t.Helper()
		if p := new(Strict).Check([]byte(text), MaxDepth); !p.OK() {
			t.Fatalf("%s: %v", text, p)
		}
		if got := canonical(&c, []byte(text)); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	f(` {"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"} `, `{"a":"é\n","b":[true,null],"f":15e-1,"n":1e2,"z":0}`)
	f(`{"a":"\u00e9\u000a","b":[true,null],"f":15e-1,"n":1e2,"z":0.0}`, `{"a":"é\n","b":[true,null],"f":15e-1,"n":1e2,"z":0}`)

	f(`{}`, `{}`)
	f(` [ ] `, `[]`)
	f(` [ false , [ ] , { } , [ { } , 1 ] ] `, `[false,[],{},[{},1]]`)
	f(`"x"`, `"x"`)
	f(`null`, `null`)

	// Keys in the order of their UTF-8 bytes, at every level.
	f(`{"b":1,"a":2,"":3,"aa":4,"B":5}`, `{"":3,"B":5,"a":2,"aa":4,"b":1}`)
	f(`{"z":{"b":[{"d":1,"c":{"y":[],"x":{}}}],"a":0},"y":[[{"b":1,"a":{"d":1,"c":2}}],{"f":1,"e":2}],"x":1}`,
		`{"x":1,"y":[[{"a":{"c":2,"d":1},"b":1}],{"e":2,"f":1}],"z":{"a":0,"b":[{"c":{"x":{},"y":[]},"d":1}]}}`)
	f(`{"\uffff":1,"😀":2,"\ue000":3,"é":4,"z":5,"\u0000":6,"":7}`, "{\"\":7,\"\\u0000\":6,\"z\":5,\"é\":4,\"\ue000\":3,\"\uffff\":1,\"😀\":2}")
	f(`{"abcdefgh\u0000":1,"abcdefgh":2,"abcdefg\u0068i":3,"abcdefg":4}`, `{"abcdefg":4,"abcdefgh":2,"abcdefgh\u0000":1,"abcdefghi":3}`)
	f(`{"\u0062":1,"a":2,"\u0061\"":3}`, `{"a":2,"a\"":3,"b":1}`)

	// Strings.
	f(`"\u0000\u0001\b\t\n\u000B\f\r\u001F\u0020\u007f\"\\\/"`, `"\u0000\u0001\b\t\n\u000b\f\r\u001f `+"\x7f"+`\"\\/"`)
	f(`"\u0008\u0009\u000a\u000c\u000D\u0022\u005c\u2028<>&\u00e9\ud83d\ude00"`, `"\b\t\n\f\r\"\\`+"\u2028"+`<>&é😀"`)
	f(`["\\n","\\u0041"]`, `["\\n","\\u0041"]`)
}

func TestCanonicalNumbers(t *testing.T) {
	var c Canonical
	f := func(number, want string) {
		t.Helper()
		if got := canonical(&c, []byte(number)); got != want {
			t.Errorf("%s: %s, want %s", number, got, want)
		}
		if got := formatNumber(number); got != want {
			t.Errorf("%s: the reference returns %s, want %s", number, got, want)
		}
	}
	f("0", "0")
	f("-0", "0")
	f("0.0", "0")
	f("-0.000E+400", "0")
	f("0e-7", "0")
	f("1", "1")
	f("-1", "-1")
	f("42", "42")
	f("100", "1e2")
	f("1050", "105e1")
	f("1.50", "15e-1")
	f("-1.5e1", "-15")
	f("15e-1", "15e-1")
	f("1.0", "1")
	f("10.0", "1e1")
	f("10.01", "1001e-2")
	f("0.001", "1e-3")
	f("-0.0010", "-1e-3")
	f("0.1e1", "1")
	f("1E400", "1e400")
	f("1e+400", "1e400")
	f("1.5e-400", "15e-401")
	f("0.00000001e-400", "1e-408")
	f("100000e400", "1e405")
	f("9007199254740993", "9007199254740993")
	f("3.14159265358979323846264338327950288419716939937510582097494459", "314159265358979323846264338327950288419716939937510582097494459e-62")
	f(strings.Repeat("9", 64), strings.Repeat("9", 64))
	f("1"+strings.Repeat("0", 63), "1e63")
}

// TestCanonicalLong covers output of more than one write.
func TestCanonicalLong(t *testing.T) {
	var c Canonical
	for _, n := range []int{canonicalPiece - 1, canonicalPiece, canonicalPiece + 1, canonicalBuffer - 1, canonicalBuffer, 100_000} {
		for _, piece := range []string{"x", "é", "😀", `\u0001`, `\"`, "ab\\n"} {
			text := []byte(`{"b":"x` + strings.Repeat(piece, n) + `","a":[` + strings.Repeat("true,", n/8) + `1]}`)
			if got, want := canonical(&c, text), referenceCanonical(text); got != want {
				t.Errorf("%d of %s: not what the reference returns", n, piece)
			}
		}
	}
	text := manyKeys(50_000)
	if got := canonical(&c, text); got != referenceCanonical(text) {
		t.Error("many keys: not what the reference returns")
	}
}

// TestCanonicalText covers strings that are no part of a text, and what is between them.
func TestCanonicalText(t *testing.T) {
	var c Canonical
	f := func(text string) {
		t.Helper()
		var out bytes.Buffer
		c.Start(&out)
		c.Literal(`{"a":`)
		c.Text([]byte(text), false)
		c.Literal(`,"b":`)
		c.Text(appendText(nil, []byte(text)), true)
		c.Literal("}")
		c.End()
		if want := `{"a":` + formatText(text) + `,"b":` + formatText(text) + `}`; out.String() != want {
			t.Errorf("%.40q: %.80s", text, out.String())
		}
		if cap(c.out) != canonicalBuffer {
			t.Errorf("%.40q: a buffer of %d bytes", text, cap(c.out))
		}
	}
	f("")
	f("a \"b\" \\ \n\x00\x1f\x7f / é 😀 \u2028")
	for _, piece := range []string{"\x01", "\"", "x", "é", "😀"} {
		f(strings.Repeat(piece, 50_000))
		f("x" + strings.Repeat(piece, 50_000))
	}
	c.Start(&bytes.Buffer{})
	c.Text(bytes.Repeat([]byte{0x80}, 5000), false) // not UTF-8: it ends
	c.End()
}

func TestCanonicalDeep(t *testing.T) {
	var c Canonical
	for open, closing := range map[string]string{`[`: `]`, `[1,`: `,2]`, `{"b":1,"a":`: `,"":2}`} {
		text := strings.Repeat(open, MaxDepth) + "10" + strings.Repeat(closing, MaxDepth)
		if got := canonical(&c, []byte(text)); got != referenceCanonical([]byte(text)) {
			t.Errorf("%s: %.40s...", open, got)
		}
	}
}

func TestCanonicalKeepsLittle(t *testing.T) {
	var c Canonical
	for _, text := range []string{
		string(manyKeys(50_000)), "[" + strings.Repeat("{},", 50_000) + "{}]", `{"` + strings.Repeat(`\u0061`, 20_000) + `":1}`, "[" + strings.Repeat("[", 100_000),
	} {
		canonical(&c, []byte(text))
		if cap(c.members) > canonicalKeeps/4 || cap(c.open) > canonicalKeeps/4 || cap(c.objects) > canonicalKeeps/2 ||
			cap(c.plain) > canonicalKeeps || cap(c.frames) > MaxDepth || cap(c.out) != canonicalBuffer {
			t.Errorf("%.20s...: room for %d members, %d open, %d objects, %d bytes, %d frames stays", text, cap(c.members), cap(c.open), cap(c.objects), cap(c.plain), cap(c.frames))
		}
		if c.text != nil || c.walker.b != nil || c.w != nil {
			t.Error("the text or the writer stays")
		}
	}
}

// compareCanonical compares what is written for a strict text with the reference, and with what is
// written for what was written.
func compareCanonical(t interface {
	Helper()
	Fatalf(string, ...any)
}, c *Canonical, text []byte) {
	t.Helper()
	got, want := canonical(c, text), referenceCanonical(text)
	if got != want {
		t.Fatalf("%q\n got %q\nwant %q", text, got, want)
	}
	if p := Check([]byte(got), MaxDepth); !p.OK() {
		t.Fatalf("%q is not JSON: %v", got, p)
	}
	if again := canonical(c, []byte(got)); again != got {
		t.Fatalf("%q becomes %q", got, again)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	for _, text := range []string{
		`{"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"}`, `{"b":{"d":1,"c":[{"f":1,"e":2}]},"\u0061":[{},[],{"x":{}}]}`, `[1e400,-0.00e-400,10.010,1E+9]`,
		`{"a":[ , "b":{"c":1}}`, `{"a"}`, `[{},}`, `[:"a "]","x":{}`, `{"a":{"b":1}]`, `{"a":[:"b` + "\xff" + `]}`, `[{"a":1 {"b":2}}{]`, "[\"\x80\x80",
	} {
		f.Add([]byte(text))
	}
	var s Strict
	var c Canonical
	f.Fuzz(func(t *testing.T, text []byte) {
		if s.Check(text, MaxDepth).OK() {
			compareCanonical(t, &c, text)
			return
		}
		// Text that was not checked: nothing may panic or go on for ever.
		if out := canonical(&c, text); len(out) > 8*len(text)+16 {
			t.Fatalf("%q becomes %d bytes", text, len(out))
		}
	})
}

func TestCanonicalAsDecoded(t *testing.T) {
	var s Strict
	var c Canonical
	rapid.Check(t, func(t *rapid.T) {
		text := genText(t)
		if !s.Check(text, MaxDepth).OK() {
			text = []byte(fmt.Sprintf(`[%q]`, rapid.StringMatching(`[ -~]*`).Draw(t, "text")))
		}
		compareCanonical(t, &c, text)
	})
}

// TestCanonicalOfShuffled checks that order, space and spelling of a value do not matter.
func TestCanonicalOfShuffled(t *testing.T) {
	var c Canonical
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.String(), 1, 40, rapid.ID).Draw(t, "keys")
		spell := func(order []string) []byte {
			out := []byte("{")
			for i, k := range order {
				if i > 0 {
					out = append(out, " ,"...)
				}
				out = append(out, '"')
				for _, r := range k {
					if r < 0x10000 && (r < 0x20 || r == '"' || r == '\\' || rapid.Bool().Draw(t, "escape")) {
						out = fmt.Appendf(out, `\u%04X`, r)
					} else {
						out = append(out, string(r)...)
					}
				}
				out = fmt.Appendf(out, `" : %d%s`, 1+len(k), rapid.SampledFrom([]string{"", ".0", "e0", "00e-2"}).Draw(t, "zeros"))
			}
			return append(out, '}')
		}
		first := spell(keys)
		second := spell(rapid.Permutation(keys).Draw(t, "order"))
		if a, b := canonical(&c, first), canonical(&c, second); a != b || a != referenceCanonical(first) {
			t.Fatalf("%s becomes %s,\n%s becomes %s", first, a, second, b)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	h := sha256.New()
	var c Canonical
	var sum [sha256.Size]byte
	for _, t := range []struct {
		name string
		text []byte
	}{
		{"small", []byte(`{"event_type":"finding_reported","severity":"high","file":"lib/user_mapper.dart","line":42,"task_id":"TASK-219"}`)},
		{"envelope", envelope()}, {"keys1000", manyKeys(1000)}, {"keys40000", manyKeys(40_000)},
		{"deep256K", []byte(strings.Repeat(`{"a":`, 31) + string(manyKeys(20_000)) + strings.Repeat("}", 31))},
	} {
		b.Run(t.name, func(b *testing.B) {
			b.SetBytes(int64(len(t.text)))
			b.ReportAllocs()
			for b.Loop() {
				h.Reset()
				c.Start(h)
				c.Value(t.text)
				c.End()
				h.Sum(sum[:0])
			}
		})
	}
}
