package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// tokens spells a walk over text: one word per token.
func tokens(w *Walker, text string) string {
	var out []string
	w.Reset([]byte(text))
	for {
		switch k := w.Next(); k.Kind {
		case End:
			return strings.Join(out, " ")
		case ObjectStart:
			out = append(out, fmt.Sprintf("{%d", k.Count))
		case ArrayStart:
			out = append(out, fmt.Sprintf("[%d", k.Count))
		case Key:
			out = append(out, string(k.Raw)+":")
		case String:
			out = append(out, "'"+string(k.Raw)+"'")
		case Number:
			out = append(out, string(k.Raw))
		default:
			out = append(out, map[TokenKind]string{ObjectEnd: "}", ArrayEnd: "]", True: "T", False: "F", Null: "N"}[k.Kind])
		}
	}
}

func TestWalk(t *testing.T) {
	var w Walker
	f := func(text, want string) {
		t.Helper()
		if p := Check([]byte(text), MaxDepth); !p.OK() {
			t.Fatalf("%q: %v", text, p)
		}
		if got := tokens(&w, text); got != want {
			t.Errorf("walk over %q = %q, want %q", text, got, want)
		}
	}
	f("1", "1")
	f(" -2.5e3 ", "-2.5e3")
	f(`"a"`, "'a'")
	f("null", "N")
	f("[]", "[0 ]")
	f("[ ]", "[0 ]")
	f("{ }", "{0 }")
	f("[1,2,3]", "[3 1 2 3 ]")
	f("[[],[[]],{}]", "[3 [0 ] [1 [0 ] ] {0 } ]")
	f(`{"a":1,"b":"a","c":["b",{"d":true}]}`, "{3 a: 1 b: 'a' c: [2 'b' {1 d: T } ] }")
	f(`{"a":{"b":"c"},"d":"e"}`, "{2 a: {1 b: 'c' } d: 'e' }")
	f(`["{[,:]}\"","\\",","]`, `[3 '{[,:]}\"' '\\' ',' ]`)
	f(`{"long key with , and : inside it":false}`, "{1 long key with , and : inside it: F }")
	f("[1\n,\t2\r]", "[2 1 2 ]")
}

func TestWalkEndsForEver(t *testing.T) {
	var w Walker
	if k := w.Next(); k.Kind != End {
		t.Errorf("zero Walker: %v, want End", k.Kind)
	}
	w.Reset([]byte("1"))
	w.Next()
	for range 3 {
		if k := w.Next(); k.Kind != End {
			t.Errorf("after the value: %v, want End", k.Kind)
		}
	}
}

func TestWalkerDropsBigCounts(t *testing.T) {
	var w Walker
	f := func(containers int, wantKept bool) {
		t.Helper()
		w.Reset([]byte("[" + strings.Repeat("[],", containers-2) + "[]]"))
		if len(w.counts) != containers || w.counts[0] != uint32(containers-1) {
			t.Fatalf("counts: %d containers, outermost holds %d", len(w.counts), w.counts[0])
		}
		w.Reset(nil)
		if kept := cap(w.counts) > 0; kept != wantKept {
			t.Errorf("%d containers: counts kept = %v, want %v", containers, kept, wantKept)
		}
	}
	w.counts = make([]uint32, 0, maxKeptCounts)
	f(maxKeptCounts, true)
	f(maxKeptCounts+1, false)
}

// build makes the tree that encoding/json would make of the text under w.
func build(w *Walker, k Token) any {
	switch k.Kind {
	case ObjectStart:
		m := make(map[string]any, k.Count)
		members := 0
		for k2 := w.Next(); k2.Kind == Key; k2 = w.Next() {
			m[string(AppendUnescaped(nil, k2.Raw))] = build(w, w.Next())
			members++
		}
		return counted(m, members, k.Count)
	case ArrayStart:
		a := make([]any, 0, k.Count)
		for k2 := w.Next(); k2.Kind != ArrayEnd; k2 = w.Next() {
			a = append(a, build(w, k2))
		}
		return counted(a, len(a), k.Count)
	case String:
		return string(AppendUnescaped(nil, k.Raw))
	case Number:
		return json.Number(k.Raw)
	case True, False:
		return k.Kind == True
	case Null:
		return nil
	}
	panic(fmt.Sprintf("unexpected token kind %d", k.Kind))
}

func counted(v any, got, want int) any {
	if got != want {
		panic(fmt.Sprintf("container announced %d members and has %d", want, got))
	}
	return v
}

// compareWalk checks that a walk over b, which Check accepts, tells the same story as encoding/json.
func compareWalk(t *testing.T, w *Walker, b []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", b, err)
	}
	w.Reset(b)
	got := build(w, w.Next())
	if k := w.Next(); k.Kind != End {
		t.Fatalf("%q: token kind %d after the value", b, k.Kind)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: walked %#v, want %#v", b, got, want)
	}
}

func TestWalkAgreesWithStandardLibrary(t *testing.T) {
	var w Walker
	for _, text := range corpus {
		if Check([]byte(text), MaxDepth).OK() {
			compareWalk(t, &w, []byte(text))
		}
	}
}
