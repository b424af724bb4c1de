//go:build !race

package jsonx

import (
	"strings"
	"testing"
)

func TestNoAllocs(t *testing.T) {
	f := func(what string, fn func()) {
		t.Helper()
		fn()
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	good, bad := sample(300), []byte(`{"a":[1,2,}`)
	deep := []byte(strings.Repeat("[", 200))
	buf := make([]byte, 0, 1024)
	str := "a string \n with \"escapes\" \u4e16"
	var w Walker
	f("Check", func() { Check(good, 128) })
	f("Check of bad text", func() { buf = Check(bad, 128).Append(buf[:0]) })
	f("Check of deep text", func() { buf = Check(deep, 128).Append(buf[:0]) })
	spelled, names, values := []byte(`{"\u0061":1,"b":2}`), []string{"a"}, make([]Value, 1)
	f("Pick", func() { Pick(spelled, names, values) })
	f("Build", func() { buf = Build(buf[:0]).Int("a", 1).Text("b", str).Bool("c", true).End() })
	f("Step", func() {
		w.Start(good)
		for kind, raw := w.Step(); kind != End; kind, raw = w.Step() {
			switch kind {
			case Number:
				ParseNumber(raw)
			case String, Key:
				buf = AppendUnescaped(buf[:0], raw)
			}
		}
	})
	f("Step of a cold Walker", func() {
		var w Walker
		w.Start(good)
		for kind, _ := w.Step(); kind != End; kind, _ = w.Step() {
		}
	})
	f("Object and Array", func() {
		o := OpenObject(good)
		_, v, _ := o.Next()
		a := OpenArray(v.Raw)
		for v, ok := a.Next(); ok; v, ok = a.Next() {
			o := OpenObject(v.Raw)
			for _, v, ok := o.Next(); ok; _, v, ok = o.Next() {
				ValueOf(v.Raw)
				Integral(v.Raw)
			}
		}
	})
	f("Integral", func() { Integral([]byte("-1234567.125e-30")) })
	f("ParseNumber of a float", func() { ParseNumber([]byte("-1234567.125e-30")) })
	f("AppendString of a string", func() { buf = AppendString(buf[:0], str) })
	f("AppendString of bytes", func() { buf = AppendString(buf[:0], good) })
}
