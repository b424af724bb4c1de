package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var (
	oneEscape = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|.)`)
	highHalf  = regexp.MustCompile(`^\\u[dD][89abAB]`)
	lowHalf   = regexp.MustCompile(`^\\u[dD][c-fC-F]`)
)

// brokenRules returns every broken rule of valid text as kind@offset, by the tokens of the standard
// library.
func brokenRules(text []byte, maxDepth int) map[string]bool {
	broken := make(map[string]bool)
	add := func(kind Kind, at int) { broken[fmt.Sprintf("%d@%d", kind, at)] = true }
	type level struct {
		keys  map[string]bool // nil in an array
		value bool            // a value of an object is next
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for end := 0; ; {
		token, err := d.Token()
		if err == io.EOF {
			return broken
		}
		at := end + len(text[end:]) - len(bytes.TrimLeft(text[end:], " \t\r\n,:"))
		end = int(d.InputOffset())
		raw := text[at:end]
		isKey := len(open) > 0 && open[len(open)-1].keys != nil && !open[len(open)-1].value
		switch v := token.(type) {
		case json.Delim:
			if v == '}' || v == ']' {
				open = open[:len(open)-1]
				isKey = false
				break
			}
			if len(open) >= maxDepth {
				add(TooDeep, at)
			}
			if len(open) > 0 {
				open[len(open)-1].value = false
			}
			open = append(open, level{})
			if v == '{' {
				open[len(open)-1].keys = make(map[string]bool)
			}
			continue
		case json.Number:
			_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
			n, _ := new(big.Int).SetString(strings.TrimPrefix(exponent, "+"), 10)
			if len(v) > 64 || n != nil && n.CmpAbs(big.NewInt(400)) > 0 {
				add(LongNumber, at)
			}
		case string:
			places := oneEscape.FindAllIndex(raw, -1)
			for i := 0; i < len(places); i++ {
				from, to := places[i][0], places[i][1]
				switch {
				case highHalf.Match(raw[from:]) && lowHalf.Match(raw[to:]):
					i++
				case highHalf.Match(raw[from:]) || lowHalf.Match(raw[from:]):
					add(LoneSurrogate, at+from)
				}
			}
			if !isKey {
				break
			}
			keys := open[len(open)-1].keys
			if keys[v] {
				add(DuplicateKey, at)
			}
			if keys[v] = true; v == "__proto__" {
				add(ForbiddenKey, at)
			}
		}
		if len(open) > 0 {
			open[len(open)-1].value = isKey
		}
	}
}

// compareStrict compares Strict with the standard library, and its members with those of a scan.
func compareStrict(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Strict, text []byte, maxDepth int) {
	t.Helper()
	n := NewNames(fuzzNames...)
	p := s.Check(text, maxDepth)
	if q := Check(text, MaxDepth); !q.OK() {
		if p.Kind != q.Kind || p.Offset != q.Offset {
			t.Fatalf("%q: %v, Check reports %v", text, p, q)
		}
	} else {
		if !json.Valid(text) || !utf8.Valid(text) {
			t.Fatalf("%q is not JSON", text)
		}
		broken := brokenRules(text, maxDepth)
		if p.OK() != (len(broken) == 0) || !p.OK() && !broken[fmt.Sprintf("%d@%d", p.Kind, p.Offset)] {
			t.Fatalf("%q: %d@%d, want one of %v", text, p.Kind, p.Offset, broken)
		}
	}
	out, want := make([]Member, n.Len()), make([]Member, n.Len())
	scanned := s.Scan(n, text, maxDepth, out)
	if r, _ := n.Scan(text, MaxDepth, want); r == ScanNull || r == ScanNotObject {
		if scanned.Kind != NotObject {
			t.Fatalf("%q: %v for no object", text, scanned)
		}
	} else if scanned != p {
		t.Fatalf("%q: Check reports %v, Scan %v", text, p, scanned)
	}
	for i := range out {
		if out[i].Kind != want[i].Kind || out[i].Escaped != want[i].Escaped || !bytes.Equal(out[i].Raw, want[i].Raw) {
			t.Fatalf("%q: member %d is %v, want %v", text, i, out[i], want[i])
		}
	}
	comparePick(t, s, n, text, maxDepth, out)
}

// comparePick compares what is picked with a scan of it. out is scratch memory.
func comparePick(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Strict, n *Names, text []byte, maxDepth int, out []Member) {
	t.Helper()
	picked := make([]Member, n.Len())
	next, ok := s.Pick(n, append([]byte("x:"), text...), 2, maxDepth, picked)
	if !ok {
		return
	}
	if p := s.Scan(n, text[:next-2], maxDepth, out); !p.OK() {
		t.Fatalf("%q: picked, Scan reports %v", text[:next-2], p)
	}
	for i := range out {
		m := &picked[i]
		if out[i].Kind != m.Kind || out[i].Escaped != m.Escaped || !bytes.Equal(out[i].Raw, m.Raw) {
			t.Fatalf("%q: member %d is %v, want %v", text, i, *m, out[i])
		}
		plain := m.Kind == String && !m.Escaped && !bytes.ContainsFunc(m.Raw, func(r rune) bool { return r < ' ' || r > '~' })
		if m.Plain != plain {
			t.Fatalf("%q: member %d is plain: %t", text, i, m.Plain)
		}
	}
	compareInside(t, s, n, text, maxDepth, picked)
}

// compareInside compares what is picked inside of the first member with a scan of it, and the rest
// with a Pick.
func compareInside(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Strict, n *Names, text []byte, maxDepth int, want []Member) {
	t.Helper()
	got, inner := make([]Member, n.Len()), make([]Member, n.Len())
	in := Inside{Names: n, Out: make([]Member, n.Len())}
	if _, ok := s.PickInside(n, append([]byte("x:"), text...), 2, maxDepth, got, &in); !ok {
		t.Fatalf("%q: picked without what is inside only", text)
	}
	for i := range got {
		if got[i].Kind != want[i].Kind || got[i].Escaped != want[i].Escaped || got[i].Plain != want[i].Plain || !bytes.Equal(got[i].Raw, want[i].Raw) {
			t.Fatalf("%q: member %d is %v with what is inside, %v without", text, i, got[i], want[i])
		}
	}
	if !in.OK {
		return
	}
	if p := s.Scan(n, got[0].Raw, maxDepth-1, inner); !p.OK() {
		t.Fatalf("%q: picked inside, Scan reports %v", text, p)
	}
	for i := range inner {
		if inner[i].Kind != in.Out[i].Kind || !bytes.Equal(inner[i].Raw, in.Out[i].Raw) {
			t.Fatalf("%q: member %d inside is %v, want %v", text, i, in.Out[i], inner[i])
		}
	}
}

// TestStrictPick: what most programs write is picked.
func TestStrictPick(t *testing.T) {
	n := NewNames("a", "longer than eight")
	var s Strict
	f := func(text string, want bool) {
		t.Helper()
		out := make([]Member, n.Len())
		if next, ok := s.Pick(n, []byte(text), 0, 4, out); ok != want || ok && next != len(text) {
			t.Errorf("%s: %t, up to %d", text, ok, next)
		}
	}
	for _, value := range []string{`"x"`, `""`, `"é\n"`, "0", "9007199254740991", "true", "false", "null", `{}`, `{"x":{"y":[1.5e3]}}`, "[ ]"} {
		f(`{"a":`+value+`}`, true)
		f(`{"a": `+value+`, "longer than eight": `+value+`}`, true)
		f(`{"a":`+value+`,"a":1}`, false)
		f(`{"a":`+value+`,}`, false)
		f(`{"a":`+value, false)
		f(`{"a" :`+value+`}`, false)
	}
	for _, value := range []string{`"\u0041"`, "01", "-1", "1.5", "12345678901234567", "nul", `{"x":1,"x":1}`, `{"__proto__":1}`, "[[[[1]]]]", "\"\x01\"", "\"\xff\"", ""} {
		f(`{"a":`+value+`}`, false)
	}
	inner := Inside{Names: n, Out: make([]Member, n.Len())}
	for text, want := range map[string]bool{`{"a":{"a":1,"longer than eight":"x"}}`: true, `{"a":{"b":1}}`: false, `{"longer than eight":{"a":1}}`: false, `{"a":{"a":{"a":1}}}`: true} {
		if _, ok := s.PickInside(n, []byte(text), 0, 4, make([]Member, n.Len()), &inner); !ok || inner.OK != want {
			t.Errorf("%s: %t, inside %t", text, ok, inner.OK)
		}
	}
	for _, text := range []string{"", "{", `{"a"`, `{"b":1}`, `{"\u0061":1}`, "[]", `{}`} {
		f(text, false)
	}
}

func FuzzStrict(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text), uint8(64))
	}
	for _, text := range []string{
		`{"a":1,"\u0061":2}`, `{"__proto__":1,"\u005f_proto__":2}`, `["\ud800","\udfff","\ud83d\ude00","\\ud800"]`, `{"\ud800":1,"\ufffd":2}`,
		`[1e400,1e401,-1E-0401,` + strings.Repeat("1", 65) + `]`, `{"a":{"a":[{"a":1,"b":2,"a":3}]},"aid":1,"aid":2}`, `{"aid":[[[[1]]]]}`,
		string(manyKeys(40)), string(manyKeys(40)[:200]) + `,"0":1}`, `{"aid":"` + "\xff" + `"}`, `{"a":1,"a":2,}`,
	} {
		f.Add([]byte(text), uint8(3))
	}
	var s Strict
	f.Fuzz(func(t *testing.T, text []byte, maxDepth uint8) {
		compareStrict(t, &s, text, int(maxDepth))
	})
}

// genText draws valid JSON with few different keys in many spellings, now and then with a byte that
// breaks it.
func genText(t *rapid.T) []byte {
	var value func(dst []byte, depth int) []byte
	text := func(dst []byte) []byte {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", `\u0061`, "b", "aid", "common prefix ", "é", `\u00e9`, `\"`, `\\`, `\n`, `\u000A`, `\/`, "/",
			`\ud83d\ude00`, "😀", `\ud800`, "__proto__", `\u005f`, "1", "2", `\u0000`, "\u007f", "\u2028", `\u001f`}), 0, 3).Draw(t, "text")
		return append(append(append(dst, '"'), strings.Join(pieces, "")...), '"')
	}
	value = func(dst []byte, depth int) []byte {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0:
			return append(dst, rapid.SampledFrom([]string{"true", "false", "null", "{}", "[ ]"}).Draw(t, "literal")...)
		case 1:
			return append(dst, rapid.StringMatching(`-?(0|[1-9][0-9]{0,5}0{0,3})(\.0{0,3}[0-9]{1,4}0{0,3})?([eE][-+]?0?[0-9]{1,3})?`).Draw(t, "number")...)
		case 2, 3:
			return text(dst)
		case 4:
			dst = append(dst, '[')
			for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
				if i > 0 {
					dst = append(dst, " ,"...)
				}
				dst = value(dst, depth-1)
			}
			return append(dst, ']')
		}
		dst = append(dst, '{')
		most := rapid.SampledFrom([]int{2, 5, 5, 2 * fewKeys}).Draw(t, "most")
		for i := range rapid.IntRange(0, most).Draw(t, "members") {
			if i > 0 {
				dst = append(dst, ',')
			}
			if rapid.IntRange(0, 3).Draw(t, "own name") > 0 {
				dst = fmt.Appendf(dst, `"k%d"`, i)
			} else {
				dst = text(dst)
			}
			dst = value(append(dst, " : "...), depth-1)
		}
		return append(dst, '}')
	}
	out := value(nil, 4)
	if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
		out[rapid.IntRange(0, len(out)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
	}
	return out
}

func TestStrictAsTokens(t *testing.T) {
	var s Strict
	rapid.Check(t, func(t *rapid.T) {
		compareStrict(t, &s, genText(t), rapid.SampledFrom([]int{0, 2, 4, 64}).Draw(t, "limit"))
	})
}
