package jsonx

import (
	"strings"
	"testing"
)

// TestBuilder: members and elements are separated by commas, names and values stand as they are.
func TestBuilder(t *testing.T) {
	f := func(b Builder, want string) {
		t.Helper()
		if got := string(b.End()); got != want || !Check([]byte(want)[1:], 8).OK() {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	begin := func() Builder { return Build([]byte("x")) }
	f(begin(), `x{}`)
	f(begin().Texts("a", nil), `x{"a":[]}`)
	f(begin().Int("a", -1).Text("b", "{").Bool("c", true).Raw("d", []byte(`{"e":[]}`)),
		`x{"a":-1,"b":"{","c":true,"d":{"e":[]}}`)
	f(begin().Texts("a", []string{"[", ""}).Bytes("b", []byte("\n")), `x{"a":["[",""],"b":"\n"}`)
	f(Builder(append(begin().Name("a"), '0')).Name("b")[:len(`x{"a":0`)], `x{"a":0}`)
}

// TestPick: the last of repeated members counts, whatever its value is and however its name is
// spelled.
func TestPick(t *testing.T) {
	names := []string{"a", "bc"}
	f := func(object, a, bc string) {
		t.Helper()
		out := []Value{{Kind: True}, {Kind: True, Raw: []byte("true")}}
		Pick([]byte(object), names, out)
		if string(out[0].Raw) != a || string(out[1].Raw) != bc {
			t.Errorf("%s: got %q and %q", object, out[0].Raw, out[1].Raw)
		}
	}
	f(`{}`, "", "")
	f(`[1]`, "", "")
	f(`{"a":1,"b":2,"bc":[3],"d":{"a":4}}`, "1", "[3]")
	f(`{"\u0061":1,"\u0062\u0063":"x","a":null}`, "null", `"x"`)
}

// TestValueText: only a string has a text.
func TestValueText(t *testing.T) {
	f := func(value, text string, ok bool) {
		t.Helper()
		if got, is := ValueOf([]byte(value)).Text(); string(got) != text || is != ok {
			t.Errorf("%s: got %q, %v", value, got, is)
		}
	}
	f(`""`, "", true)
	f(`"a\u0000\ud800"`, "a\x00\uFFFD", true)
	f(`["a"]`, "", false)
	f(`1`, "", false)
	f(``, "", false)
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aé", 3, "aé"}, {"aéb", 2, "a"}, {"é", 1, ""}, {"", 0, ""}, {"\x80\x80", 1, ""}} {
		if got := Clip(c.text, c.most); got != c.want {
			t.Errorf("%q at %d: %q", c.text, c.most, got)
		}
		if got := Clip([]byte(c.text), c.most); string(got) != c.want {
			t.Errorf("bytes %q at %d: %q", c.text, c.most, got)
		}
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]string{`[]`: "", `["a","b\n"]`: "a|b\n", `[1]`: "no", `["a",null]`: "no", `"a"`: "no", `{}`: "no"} {
		list, ok := ValueOf([]byte(text)).Texts()
		if got := strings.Join(list, "|"); ok != (want != "no") || ok && got != want {
			t.Errorf("%s: %q %v", text, got, ok)
		}
	}
}
