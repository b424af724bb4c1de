package jsonx

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestCompact(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Compact([]byte(text)); string(got) != want {
			t.Errorf("Compact(%q) = %q, want %q", text, got, want)
		}
	}
	f(``, ``)
	f(`{"a":1}`, `{"a":1}`)
	f(" { \"a b\" : [ 1 ,\t2.50 ]\r\n, \"c\\\" d\" : null } ", `{"a b":[1,2.50],"c\" d":null}`)
	f(`" "`, `" "`)
	f(`"cut `, `"cut `)
}

func FuzzCompact(f *testing.F) {
	f.Add([]byte(" {\"a\" : [1, 2e5 , \"x \\\\\" ] } "))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !Check(text, MaxDepth).OK() {
			Compact(text)
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Skip()
		}
		if got := Compact(bytes.Clone(text)); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("Compact(%q) = %q, want %q", text, got, want.Bytes())
		}
	})
}
