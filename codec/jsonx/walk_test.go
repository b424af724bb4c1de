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
	w.Start([]byte(text))
	for {
		switch kind, raw := w.Step(); kind {
		case End:
			return strings.Join(out, " ")
		case Key:
			out = append(out, string(raw)+":")
		case String:
			out = append(out, "'"+string(raw)+"'")
		case Number:
			out = append(out, string(raw))
		default:
			out = append(out, map[TokenKind]string{ObjectStart: "{", ObjectEnd: "}", ArrayStart: "[", ArrayEnd: "]",
				True: "T", False: "F", Null: "N"}[kind])
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
	f("[]", "[ ]")
	f("[ ]", "[ ]")
	f("{ }", "{ }")
	f("[1,2,3]", "[ 1 2 3 ]")
	f("[[],[[]],{}]", "[ [ ] [ [ ] ] { } ]")
	f(`{"a":1,"b":"a","c":["b",{"d":true}]}`, "{ a: 1 b: 'a' c: [ 'b' { d: T } ] }")
	f(`{"a":{"b":"c"},"d":"e"}`, "{ a: { b: 'c' } d: 'e' }")
	f(`["{[,:]}\"","\\",","]`, `[ '{[,:]}\"' '\\' ',' ]`)
	f(`{"long key with , and : inside it":false}`, "{ long key with , and : inside it: F }")
	f("[1\n,\t2\r]", "[ 1 2 ]")
}

func TestWalkEndsForEver(t *testing.T) {
	var w Walker
	if kind, _ := w.Step(); kind != End {
		t.Errorf("zero Walker: %v, want End", kind)
	}
	w.Start([]byte("1"))
	w.Step()
	for range 3 {
		if kind, _ := w.Step(); kind != End {
			t.Errorf("after the value: %v, want End", kind)
		}
	}
}

// build makes the tree that encoding/json would make of the text under w.
func build(w *Walker, kind TokenKind, raw []byte) any {
	switch kind {
	case ObjectStart:
		m := map[string]any{}
		for key, name := w.Step(); key == Key; key, name = w.Step() {
			value, text := w.Step()
			m[string(AppendUnescaped(nil, name))] = build(w, value, text)
		}
		return m
	case ArrayStart:
		a := []any{}
		for element, text := w.Step(); element != ArrayEnd; element, text = w.Step() {
			a = append(a, build(w, element, text))
		}
		return a
	case String:
		return string(AppendUnescaped(nil, raw))
	case Number:
		return json.Number(raw)
	case True, False:
		return kind == True
	case Null:
		return nil
	}
	panic(fmt.Sprintf("unexpected token kind %d", kind))
}

// compareWalk checks that a walk over b, which Check accepts, finds the same as
// encoding/json.
func compareWalk(t *testing.T, w *Walker, b []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", b, err)
	}
	w.Start(b)
	kind, raw := w.Step()
	got := build(w, kind, raw)
	if kind, _ := w.Step(); kind != End {
		t.Fatalf("%q: token kind %d after the value", b, kind)
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
