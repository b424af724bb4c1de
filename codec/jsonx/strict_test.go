package jsonx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func strictKind(text string) Kind {
	var s Strict
	names := NewNames("a", "b")
	p := s.Scan([]byte(text), 64, names, make([]Member, names.Len()))
	return p.Kind
}

func TestStrict(t *testing.T) {
	f := func(text string, want Kind) {
		t.Helper()
		if got := strictKind(text); got != want {
			t.Errorf("%.80s: kind %d, want %d", text, got, want)
		}
	}
	f(`{}`, Fine)
	f(`{"a":1,"b":{"a":1,"b":[{"a":1},{"a":1}]}}`, Fine)
	f(`{"a":"\"a\":1","b":"{"}`, Fine)
	f(`{"a":1,"a":2}`, DuplicateKey)
	f(`{"x":1,"x":2}`, DuplicateKey)
	f(`{"x":1,"\u0078":2}`, DuplicateKey)
	f(`{"b":{"x":1,"y":[{"q":1 , "q" : 2}]}}`, DuplicateKey)
	f(`{"b":{"x":{"x":{"x":1}},"y":"x"}}`, Fine)
	f(`{"__proto__":1}`, ForbiddenKey)
	f(`{"b":[{"__pr\u006fto__":1}]}`, ForbiddenKey)
	f(`{"a":"__proto__"}`, Fine)
	f(`{"a":"\ud83d\ude00"}`, Fine)
	for _, s := range []string{`\ud800`, `\udc00`, `\ud800x`, `\ud800\n`, `\ud800\ud800`, `\udc00\ud800`, `\ud800\u0041`} {
		f(`{"a":"`+s+`"}`, LoneSurrogate)
		f(`{"`+s+`":1}`, LoneSurrogate)
		f(`{"c":["`+s+`"]}`, LoneSurrogate)
	}
	f(`{"a":"\\ud800"}`, Fine)
	f(`{"a":`+strings.Repeat("1", 64)+`}`, Fine)
	f(`{"a":`+strings.Repeat("1", 65)+`}`, LongNumber)
	f(`{"a":[1e400,-1E-400,1e+0400]}`, Fine)
	f(`{"a":[1e401]}`, LongNumber)
	f(`{"a":-1e-401}`, LongNumber)
	f(`{"a":1e99999999999999999999999999999999999999}`, LongNumber)
	f(`[]`, NotObject)
	f(`null`, NotObject)
	f(`"x"`, NotObject)
	f(``, UnexpectedEnd)
	f(`{"a":1}{}`, ExtraData)
	f("{\"a\":\"\xff\"}", InvalidUTF8)
	f(`{"a":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`, Fine)
	f(`{"a":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`, TooDeep)
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	f("{"+strings.Join(many, ",")+"}", Fine)
	f("{"+strings.Join(many, ",")+`,"k777":1}`, DuplicateKey)
}

func TestStrictDoesNotAllocate(t *testing.T) {
	text := []byte(`{"a":"x","b":{"c":[1,2,{"d":"\u0041","e":null}]},"z":1.5e3}`)
	var s Strict
	names := NewNames("a", "b")
	out := make([]Member, names.Len())
	s.Scan(text, 64, names, out)
	if n := testing.AllocsPerRun(100, func() { s.Scan(text, 64, names, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var c Canonical
	h := sha256.New()
	write := func(b []byte) { h.Write(b) }
	if n := testing.AllocsPerRun(100, func() {
		c.Begin(write)
		c.Value(text)
		c.End()
	}); n != 0 {
		t.Errorf("%v allocations of Canonical", n)
	}
}

func canonical(raw string) string {
	var c Canonical
	var b []byte
	c.Begin(func(p []byte) { b = append(b, p...) })
	c.Value([]byte(raw))
	c.End()
	return string(b)
}

// TestCanonical has the examples of threads §9.
func TestCanonical(t *testing.T) {
	f := func(raw, want, sum string) {
		t.Helper()
		got := canonical(raw)
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
		if h := sha256.Sum256([]byte(got)); sum != "" && hex.EncodeToString(h[:]) != sum {
			t.Errorf("%s: another digest", raw)
		}
	}
	f(`{"schema_version":1,"kind":"chat","body":"hi"}`, `{"body":"hi","kind":"chat","schema_version":1}`,
		"1f86475e199dff0ef0e05774892c0fbe112477bd8ac520ea0182d1823bcbe023")
	f(`{"metadata": {}, "schema_version":1.0,"kind":"chat","body":"hi"}`, `{"body":"hi","kind":"chat","metadata":{},"schema_version":1}`,
		"17d48177063b383e9d9905480da64f744f41011e8ed11ca44723bd9ff6b712bb")
	want := `{"body":"hi","kind":"chat","metadata":{"a":"é\n","b":[true,null],"f":15e-1,"n":1e2,"z":0},"schema_version":1}`
	sum := "41516ae2d8cd11669dee97d4bef09024fa85779d84ee14b0e1411e9ce6f277e8"
	f(`{"body":"hi","kind":"chat","metadata":{"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"},"schema_version":1}`, want, sum)
	f(`{"body":"hi","kind":"chat","metadata":{"a":"\u00e9\u000a","b":[true,null],"f":15e-1,"n":1e2,"z":0.0},"schema_version":1}`, want, sum)
	f(`["\u0000\b\t\n\f\r\u001F\"\\\/\u007f\ud83d\ude00"]`, `["\u0000\b\t\n\f\r\u001f\"\\/`+"\x7f😀"+`"]`, "")
	f(`[1e400,0.001,-12300e-2,1000000000000000000000000000000000000000000001,-0.0e5]`, `[1e400,1e-3,-123,1000000000000000000000000000000000000000000001,0]`, "")
	f(`{"b":1,"\u0061":2,"":3,"é":4,"z":5}`, `{"":3,"a":2,"b":1,"z":5,"é":4}`, "")
	long := strings.Repeat("x", 5000)
	f(`{"a":"`+long+`\n`+long+`"}`, `{"a":"`+long+`\n`+long+`"}`, "")
}

// oracle reads text with the standard library. ok is false where a strict reader refuses it.
func oracle(text []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := oracleValue(d, 0)
	if err != nil {
		return nil, false
	}
	if _, err = d.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	_, isObject := v.(map[string]any)
	return v, isObject
}

var errOracle = errors.New("refused")

func oracleValue(d *json.Decoder, depth int) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			if _, twice := m[k.(string)]; twice || k == forbiddenKey || depth == 64 {
				return nil, errOracle
			}
			if m[k.(string)], err = oracleValue(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return m, err
	case json.Delim('['):
		l := []any{}
		for d.More() {
			v, err := oracleValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		_, err = d.Token()
		return l, err
	}
	if n, isNumber := tok.(json.Number); isNumber && len(n) > maxNumberBytes {
		return nil, errOracle
	}
	return tok, nil
}

// oracleCanonical writes a value as threads §4.3 has it.
func oracleCanonical(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			parts = append(parts, oracleCanonical(k)+":"+oracleCanonical(v[k]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, oracleCanonical(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case json.Number:
		return oracleNumber(string(v))
	case string:
		var b strings.Builder
		for _, r := range v {
			switch i := strings.IndexRune("\"\\\b\t\n\f\r", r); {
			case i >= 0:
				b.WriteString(`\` + string(`"\btnfr`[i]))
			case r < ' ':
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		return `"` + b.String() + `"`
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

func oracleNumber(s string) string {
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	e, _ := strconv.Atoi(exp)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n, _ := new(big.Int).SetString(whole+fraction, 10)
	e -= len(fraction)
	if n.Sign() == 0 {
		return "0"
	}
	for ten, rest := big.NewInt(10), new(big.Int); ; e++ {
		q, r := new(big.Int).QuoRem(n, ten, rest)
		if r.Sign() != 0 {
			break
		}
		n = q
	}
	if e == 0 {
		return n.String()
	}
	return n.String() + "e" + strconv.Itoa(e)
}

// FuzzStrict compares Strict and Canonical with the standard library.
func FuzzStrict(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1,"b":{"c":[1.50,"x\u00e9\n",null,true]}}`, `{"a":1,"\u0061":2}`, `{"b":"\ud800"}`,
		`{"x":[1e400,-0,0.0],"":{"":{}}}`, `{"__proto__":1}`, "{\"a\":\"\xff\"}", `{"a":1e401}`, `{"a":100e-2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kind := strictKind(text)
		want, ok := oracle([]byte(text))
		switch kind {
		case Fine:
			if !ok {
				t.Fatalf("%q is accepted", text)
			}
			if got := canonical(text); got != oracleCanonical(want) {
				t.Fatalf("%q: %s, want %s", text, got, oracleCanonical(want))
			}
		case LoneSurrogate, LongNumber, InvalidUTF8, TooDeep: // the standard library takes these
		default:
			if ok {
				t.Fatalf("%q is refused: %d", text, kind)
			}
		}
	})
}
