package jsonx

import (
	"fmt"
	"strings"
	"testing"
)

// TestLoose: what a loose Strict lets pass, and in what order it reports the rest.
func TestLoose(t *testing.T) {
	s := Strict{Loose: true}
	n := NewNames("a")
	f := func(text, want string) {
		t.Helper()
		p := s.Scan(n, []byte(text), 2, make([]Member, 1))
		if got := p.String(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	f(`{"__proto__":1e999,"a":`+strings.Repeat("1", 99)+`}`, "")
	f(`{"__proto__":1,"a":2,"a":3}`, "duplicate key at offset 21")
	f(`{"__proto__":1,"a":[[]]}`, "nesting deeper than 2 at offset 20")
	f(`{"__proto__":"\ud800"}`, "escape of half a character at offset 14")
	f(`[1e999]`, "not an object at offset 0")
	f(`[{"a":1,"a":2}]`, "duplicate key at offset 8")
	f(`[1e999}`, "unexpected character '}' at offset 6")
}

func TestStrict(t *testing.T) {
	var s Strict
	f := func(text, want string) {
		t.Helper()
		if got := s.Check([]byte(text), 64).String(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	f(`{}`, "")
	f(` [ { } , [ ] , null , true , false , "x" , -1.5e+3 ] `, "")
	f(`"x"`, "")
	f(`{"a":1,"b":{"a":1,"b":{"a":1}},"c":[{"a":1},{"a":2}]}`, "")

	// A fault of syntax outranks a broken rule.
	f(``, "unexpected end of input at offset 0")
	f(`{"a":1,"a":2`, "unexpected end of input at offset 12")
	f(`{"a":1,"a":2} x`, "unexpected character 'x' after the value at offset 14")
	f(`{"__proto__":1,}`, "unexpected character '}' at offset 15")
	f(`[1e999,"\ud800",]`, "unexpected character ']' at offset 16")
	f("{\"a\":1,\"a\":\"\xff\"}", "invalid UTF-8 at offset 12")
	f(`{"a":01}`, "unexpected character '1' at offset 6")
	f(`{"a":1e}`, "unexpected character '}' at offset 7")
	f(`{"a":tru}`, "unexpected character '}' at offset 8")
	f(`{"a" 1}`, "unexpected character '1' at offset 5")
	f(`{1:1}`, "unexpected character '1' at offset 1")
	f(`[1}`, "unexpected character '}' at offset 2")
	f(`{"a":1]`, "unexpected character ']' at offset 6")
	f(`{"a`, "unexpected end of input at offset 3")

	f(`{"a":1,"a":2}`, "duplicate key at offset 7")
	f(`{"a":1,"\u0061":2}`, "duplicate key at offset 7")
	f(`{"\u0061":1,"\u0061":2}`, "duplicate key at offset 12")
	f(`{"\/":1 , "/":2}`, "duplicate key at offset 10")
	f(`{"é":1,"\u00e9":2}`, "duplicate key at offset 8")
	f(`{"\ud83d\ude00":1,"😀":2}`, "duplicate key at offset 18")
	f(`{"":1,"":2}`, "duplicate key at offset 6")
	f(`[{"x":[{"a":{},"a":[]}]}]`, "duplicate key at offset 15")
	f(`{"a":{"x":1},"b":[{"x":1}],"a":1}`, "duplicate key at offset 27")
	f(`{"abcdefghi":1,"abcdefghj":2,"abcdefghi":3}`, "duplicate key at offset 29")
	f(`{"a":1,"a\u0000":2,"\u0000a":3,"":4,"\u0000":5,"abcdefgh":6,"abcdefgh\u0000":7}`, "")
	f(`{"a":1,"A":2,"a ":3}`, "")

	f(`{"__proto__":1}`, "forbidden key __proto__ at offset 1")
	f(`{"a":[{"b":{"\u005f_proto_\u005F":1}}]}`, "forbidden key __proto__ at offset 12")
	f(`{"__proto_":1,"_proto__":1,"__proto___":1,"__Proto__":1,"constructor":1,"x":"__proto__"}`, "")

	f(`"\ud800"`, "escape of half a character at offset 1")
	f(`["ab\n\udfff"]`, "escape of half a character at offset 6")
	f(`{"\uD83D\uD83D\uDE00":1}`, "escape of half a character at offset 2")
	f(`"\ud83d\ude00\u00e9\\ud800\"\ufffd"`, "")
	f(`"\ud83d \ude00"`, "escape of half a character at offset 1")
	f(`"\ud83d\n\ude00"`, "escape of half a character at offset 1")
	f(`"\ud83d\\ude00"`, "escape of half a character at offset 1")
}

func TestStrictNumbers(t *testing.T) {
	var s Strict
	f := func(number string, ok bool) {
		t.Helper()
		for _, text := range []string{"%s", " [%s] ", `{"a":%s,"b":1}`} {
			text = fmt.Sprintf(text, number)
			p := s.Check([]byte(text), 64)
			if p.OK() != ok || !ok && (p.Kind != LongNumber || p.Offset != strings.Index(text, number)) {
				t.Errorf("%s: %v", text, p)
			}
		}
	}
	f("0", true)
	f("-0", true)
	f("1771329600", true)
	f("1e400", true)
	f("1E+400", true)
	f("-1.5e-400", true)
	f("1e000000400", true)
	f("0e400", true)
	f("1e401", false)
	f("1e-401", false)
	f("1E+000401", false)
	f("1e1000", false)
	f("0e99999999999999999999999999", false)
	f(strings.Repeat("9", 64), true)
	f(strings.Repeat("9", 65), false)
	f("-"+strings.Repeat("9", 63), true)
	f("-"+strings.Repeat("9", 64), false)
	f("0."+strings.Repeat("0", 62), true)
	f("0."+strings.Repeat("0", 63), false)
	f("1e"+strings.Repeat("0", 62), true)
	f("1e"+strings.Repeat("0", 63), false)
}

func TestStrictDepth(t *testing.T) {
	var s Strict
	f := func(text string, maxDepth int, want string) {
		t.Helper()
		if got := s.Check([]byte(text), maxDepth).String(); got != want {
			t.Errorf("%.20s... of %d bytes, limit %d: %q, want %q", text, len(text), maxDepth, got, want)
		}
	}
	f(nested(64), 64, "")
	f(nested(65), 64, "nesting deeper than 64 at offset 64")
	f(nested(65)[1:], 64, "unexpected character ']' after the value at offset 128")
	f(`{"a":1,"b":`+nested(64)+`}`, 64, "nesting deeper than 64 at offset 74")
	f(nested(MaxDepth), 64, "nesting deeper than 64 at offset 64")
	f(nested(MaxDepth)+"]", 64, "unexpected character ']' after the value at offset 1024")
	f(nested(MaxDepth), MaxDepth+9, "")
	f(nested(MaxDepth+1), MaxDepth+9, "nesting deeper than 512 at offset 512")
	f(strings.Repeat(`{"a":`, 1<<17), 64, "nesting deeper than 64 at offset 2560")
	f("1", 0, "")
	f("{}", 0, "nesting deeper than 0 at offset 0")
	f("[]", -1, "nesting deeper than 0 at offset 0")
}

// TestStrictManyKeys covers both ways of comparing keys, around the number where they change.
func TestStrictManyKeys(t *testing.T) {
	var s Strict
	for _, n := range []int{2, fewKeys - 1, fewKeys, fewKeys + 1, 32, 33, 1000, 20_000} {
		text := `{"outer":[`
		for _, format := range []string{`"%d":0,`, `"a common prefix %06d":0,`, `"%06d a common suffix":0,`, `"\u0061%06d":0,`} {
			object := "{"
			for i := range n {
				object += fmt.Sprintf(format, i)
				if i%100 == 99 {
					text, object = text+object, "" // short strings to append to
				}
			}
			text += object + `"last":1},`
		}
		text += `{}],"last":2}`
		if p := s.Check([]byte(text), 64); !p.OK() {
			t.Fatalf("%d keys: %v", n, p)
		}
		for _, k := range []int{0, n / 2, n - 1} {
			text := strings.Replace(text, `"last":1`, fmt.Sprintf(`"%d":1`, k), 1)
			want := strings.Index(text, fmt.Sprintf(`"%d":1}`, k))
			p := s.Check([]byte(text), 64)
			if p.Kind != DuplicateKey || p.Offset != want || string(p.Key([]byte(text))) != fmt.Sprint(k) {
				t.Fatalf("%d keys, key %d again at %d: %v", n, k, want, p)
			}
		}
	}
}

func TestStrictKeepsLittle(t *testing.T) {
	var s Strict
	large := manyKeys(100_000)
	escaped := `{"` + strings.Repeat(`\u0061`, 20_000) + `":1}`
	for _, text := range []string{string(large), escaped, string(large[:len(large)-1])} {
		s.Check([]byte(text), 64)
		if cap(s.keys) > 2*strictKeeps || cap(s.plain) > strictArena || cap(s.places) > strictPlaces {
			t.Errorf("%.20s...: room for %d keys, %d bytes, %d places stays", text, cap(s.keys), cap(s.plain), cap(s.places))
		}
		if s.text != nil || s.out != nil {
			t.Error("the text stays")
		}
	}
	if p := s.Check([]byte(`{"a":1,"a":1}`), 64); p.Kind != DuplicateKey {
		t.Error(p)
	}
}

// strictScanned spells the result of a strict scan over members that still hold something.
func strictScanned(s *Strict, line string) string {
	out := make([]Member, scanNames.Len())
	for i := range out {
		out[i] = Member{Kind: True, Escaped: true, Raw: []byte(line)}
	}
	p := s.Scan(scanNames, []byte(line), 64, out)
	_, members, _ := strings.Cut(scanned(ScanOK, -1, out), "ok")
	return p.String() + members
}

func TestStrictScan(t *testing.T) {
	var s Strict
	f := func(line, want string) {
		t.Helper()
		if got := strictScanned(&s, line); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
	f(`{"aid":"E"}`, "; aid=6:E")
	f(` { "x" : [ {"aid":1} ] , "aid" : { "aid" : [ ] } , "input_json" : [ 1 ] , "" : null } `,
		`; aid=1:{ "aid" : [ ] }; input_json=3:[ 1 ]; =10:null`)
	f(`{"aid":"\n","input_json":true,"idempotency_key":-1.5e3,"é":"x"}`, `; aid=6:\n escaped; input_json=8:true; idempotency_key=7:-1.5e3; é=6:x`)
	f(`{"x":"\n","aid":["\n"],"input_json":"x"}`, `; aid=3:["\n"]; input_json=6:x`)
	f(`{"\u0061id":"E","\u00e9":1,"a\u0069":2}`, "; aid=6:E; é=7:1")
	f(`{"Aid":1,"aidx":2,"ai":3}`, "")

	// The members stay readable where only a rule is broken.
	f(`{"aid":1,"aid":2,"input_json":3}`, "duplicate key at offset 9; aid=7:1; input_json=7:3")
	f(`{"x":{"a":1,"a":2},"aid":1}`, "duplicate key at offset 12; aid=7:1")
	f(`{"x":`+nested(64)+`,"aid":1}`, "nesting deeper than 64 at offset 68; aid=7:1")
	f(`{"aid":1,"x":"\ud800","x":1e999}`, "escape of half a character at offset 14; aid=7:1")

	f(`{"aid":1,"aid":2`, "unexpected end of input at offset 16")
	f(`{"aid":1} x`, "unexpected character 'x' after the value at offset 10")
	f(`{"aid":1,"__proto__":2`, "unexpected end of input at offset 22")
	f(`{"aid":1,}`, "unexpected character '}' at offset 9")
	for _, line := range []string{`null`, `[{"aid":1,"aid":2}]`, `"aid"`, `1`} {
		f(line, "not an object at offset 0")
	}
	f(``, "unexpected end of input at offset 0")
	f(`nul`, "unexpected end of input at offset 3")
}
