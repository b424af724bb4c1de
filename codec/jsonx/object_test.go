package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestValueOf(t *testing.T) {
	f := func(text string, kind TokenKind, raw string) {
		t.Helper()
		if v := ValueOf([]byte(text)); v.Kind != kind || string(v.Raw) != raw {
			t.Errorf("ValueOf(%q) = %d %q, want %d %q", text, v.Kind, v.Raw, kind, raw)
		}
	}
	f("{}", ObjectStart, "{}")
	f(" \t[1, 2]\r\n", ArrayStart, "[1, 2]")
	f(`" a "`, String, `" a "`)
	f(" -1.5e3", Number, "-1.5e3")
	f("0 ", Number, "0")
	f("true", True, "true")
	f("false", False, "false")
	f(" null ", Null, "null")
	f("", End, "")
	f(" \n", End, "")
	f("x", End, "")
	f("]", End, "")
}

// spell writes what an iteration over text gives, one word per member or element.
func spell(text string) string {
	var out []string
	o, a := OpenObject([]byte(text)), OpenArray([]byte(text))
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		out = append(out, fmt.Sprintf("%s=%d:%s", key, v.Kind, v.Raw))
	}
	for v, ok := a.Next(); ok; v, ok = a.Next() {
		out = append(out, fmt.Sprintf("%d:%s", v.Kind, v.Raw))
	}
	return strings.Join(out, " ")
}

func TestIterate(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if p := Check([]byte(text), MaxDepth); !p.OK() {
			t.Fatalf("%q: %v", text, p)
		}
		if got := spell(text); got != want {
			t.Errorf("members of %q: %q, want %q", text, got, want)
		}
	}
	f(`{}`, "")
	f(`[ ]`, "")
	f(`{"a":1}`, "a=7:1")
	f(` { "a" : 1 , "b" : "x" } `, `a=7:1 b=6:"x"`)
	f(`{"a":true,"b":false,"c":null,"d":-0.5e-1}`, "a=8:true b=9:false c=10:null d=7:-0.5e-1")
	f("{\"a\"\n:\t{\"b\":[1,{}]}\r,\"c\":[]}", `a=1:{"b":[1,{}]} c=3:[]`)
	f(`{"":"","a\"}":"]}\\","a":1,"a":2}`, `=6:"" a\"}=6:"]}\\" a=7:1 a=7:2`)
	f(`[1,"a",[2,[3]],{"b":[]},null]`, `7:1 6:"a" 3:[2,[3]] 1:{"b":[]} 10:null`)
	f("[1\n,2 ,\t3\r]", "7:1 7:2 7:3")
	for _, scalar := range []string{"1", `"{}"`, "true", "null"} {
		f(scalar, "")
	}
}

func TestIterationEndsForEver(t *testing.T) {
	f := func(o Object, a Array) {
		t.Helper()
		for range 3 {
			if key, v, ok := o.Next(); ok || key != nil || v.Kind != End {
				t.Errorf("Object.Next at the end = %q, %v, %v", key, v, ok)
			}
			if v, ok := a.Next(); ok || v.Kind != End {
				t.Errorf("Array.Next at the end = %v, %v", v, ok)
			}
		}
	}
	f(Object{}, Array{})
	f(OpenObject(nil), OpenArray(nil))
	f(OpenObject([]byte("[1]")), OpenArray([]byte(`{"a":1}`)))
	o, a := OpenObject([]byte(`{"a":1}`)), OpenArray([]byte("[1]"))
	o.Next()
	a.Next()
	f(o, a)
}

func TestCopyForksIteration(t *testing.T) {
	o := OpenObject([]byte(`{"a":1,"b":2}`))
	fork := o
	o.Next()
	if key, _, _ := fork.Next(); string(key) != "a" {
		t.Errorf("the copy stands at %q, want the first member", key)
	}
}

// compareIterate checks that stepping into every container of b, which Check accepts, finds the raw
// values that encoding/json finds.
func compareIterate(t *testing.T, b []byte) {
	t.Helper()
	v := ValueOf(b)
	if want := bytes.TrimSpace(b); !bytes.Equal(v.Raw, want) {
		t.Fatalf("ValueOf(%q) = %q, want %q", b, v.Raw, want)
	}
	got := make(map[string]string)
	o, a := OpenObject(b), OpenArray(b)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		got[string(AppendUnescaped(nil, key))] = string(v.Raw)
		compareIterate(t, v.Raw)
	}
	n := 0
	for v, ok := a.Next(); ok; v, ok = a.Next() {
		got[fmt.Sprint(n)] = string(v.Raw)
		n++
		compareIterate(t, v.Raw)
	}
	want := make(map[string]json.RawMessage)
	switch v.Kind {
	case ObjectStart:
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", b, err)
		}
	case ArrayStart:
		var elements []json.RawMessage
		if err := json.Unmarshal(b, &elements); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", b, err)
		}
		for i, e := range elements {
			want[fmt.Sprint(i)] = e
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%q: %d members %q, want %d", b, len(got), got, len(want))
	}
	for k, w := range want {
		if got[k] != string(w) {
			t.Fatalf("%q: member %q is %q, want %q", b, k, got[k], w)
		}
	}
}

// randomText appends a random value to dst, spaced at random, so that every character of structure
// meets every place in a word.
func randomText(r *rand.Rand, dst []byte, depth int) []byte {
	space := func() { dst = append(dst, "  \n\t\r   "[:r.IntN(9)*(r.IntN(4)/3)]...) }
	text := func() {
		dst = append(dst, '"')
		for range r.IntN(1 + r.IntN(20)) {
			parts := [...]string{"a", "{", "}", "[", "]", ",", ":", `\"`, `\\`, `\u00e9`, "é", "世", `\n`, "y", "_", "plain text"}
			dst = append(dst, parts[r.IntN(len(parts))]...)
		}
		dst = append(dst, '"')
	}
	space()
	switch kind := r.IntN(8); {
	case kind < 4 && depth > 0:
		object := kind < 2
		dst = append(dst, "[{"[kind/2^1])
		for i := range r.IntN(6) {
			if i > 0 {
				dst = append(dst, ',')
			}
			space()
			if object {
				text()
				space()
				dst = append(dst, ':')
			}
			dst = randomText(r, dst, depth-1)
		}
		space()
		dst = append(dst, closer(object))
	case kind < 6:
		text()
	default:
		parts := [...]string{"true", "false", "null", "0", "-1.5E+10", "123456789"}
		dst = append(dst, parts[r.IntN(len(parts))]...)
	}
	space()
	return dst
}

func TestIterateAgreesWithStandardLibrary(t *testing.T) {
	for _, text := range append(corpus, string(envelope()), string(sample(300))) {
		if Check([]byte(text), MaxDepth).OK() {
			compareIterate(t, []byte(text))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		b := randomText(r, nil, 5)
		if p := Check(b, MaxDepth); !p.OK() {
			t.Fatalf("%q: %v", b, p)
		}
		compareIterate(t, b)
	}
}

// TestSkipAtEveryOffset moves what ends and hides a container over all places of the words the scan
// reads.
func TestSkipAtEveryOffset(t *testing.T) {
	hidden := []string{``, `"}"`, `"]]"`, `"\""`, `"\\"`, `"\\\"}"`, `[{}]`, `[[],[]]`, `"é}"`, `{"a":"b"}`, `"` + strings.Repeat(`\"]`, 9) + `"`}
	for _, inner := range hidden {
		for pad := range 20 {
			for tail := range 10 {
				raw := "[" + strings.Repeat(" ", pad) + inner + "]"
				text := "[" + raw + strings.Repeat(" ", tail) + "]"
				a := OpenArray([]byte(text))
				if v, ok := a.Next(); !ok || string(v.Raw) != raw {
					t.Fatalf("%q: first element %q", text, v.Raw)
				}
				if v, ok := a.Next(); ok {
					t.Fatalf("%q: second element %q", text, v.Raw)
				}
			}
		}
	}
}

// iterateUnchecked steps over any bytes: it must end, whatever it finds.
func iterateUnchecked(t *testing.T, b []byte) {
	t.Helper()
	ValueOf(b)
	o, a := OpenObject(b), OpenArray(b)
	n := 0
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		AppendUnescaped(nil, key)
		Integral(v.Raw)
		n++
	}
	for v, ok := a.Next(); ok; v, ok = a.Next() {
		Integral(v.Raw)
		n++
	}
	if n > len(b) {
		t.Fatalf("%q: %d members in %d bytes", b, n, len(b))
	}
}

func TestIterateUncheckedText(t *testing.T) {
	text := envelope()[:600]
	for end := range text {
		iterateUnchecked(t, text[:end])
	}
	for i := range text {
		for _, c := range []byte("\x00\xff\"\\{}[],: ") {
			bad := bytes.Clone(text)
			bad[i] = c
			iterateUnchecked(t, bad)
		}
	}
	for _, text := range corpus {
		iterateUnchecked(t, []byte(text))
	}
	for _, text := range []string{`{"a"`, `{"a":`, `{"a" 1}`, `{"a"}`, `{"a":}`, `{,}`, `[,]`, `[}`, `["`, `["\`, `[tr`, `[1`, `{"a":"\"`, "[\\", `[[\`} {
		iterateUnchecked(t, []byte(text))
	}
}

func FuzzObject(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	f.Add(envelope()[:512])
	f.Add([]byte(`{"a":"\\\"}]","b":[[{"c":"é\u00e9"}],{}] , "d":-1.0e2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if Check(b, 64).OK() {
			compareIterate(t, b)
			return
		}
		iterateUnchecked(t, b)
	})
}

func TestAppendWithout(t *testing.T) {
	f := func(object, want string) {
		t.Helper()
		if got := AppendWithout([]byte(">"), []byte(object), "code", "error"); string(got) != ">"+want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
	f(`{}`, `{}`)
	f(`{"code":1}`, `{}`)
	f(`{"code":1,"a":{},"error":2,"code":{"code":3}}`, `{"a":{}}`)
	f(`{"a":"{","b":2}`, `{"a":"{","b":2}`)
	f(`{"Code":1,"cod":2,"cod\"":3}`, `{"Code":1,"cod":2,"cod\"":3}`)
	f(`{"\u0063\u006f\u0064\u0065":1,"\u0063\u006F\u0064\u0065x":2}`, `{"\u0063\u006F\u0064\u0065x":2}`)
}
