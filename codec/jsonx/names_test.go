package jsonx

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesFind(t *testing.T) {
	f := func(names []string, name string, want int) {
		t.Helper()
		n := NewNames(names...)
		for _, behind := range []string{"", `"`, `":"E"}  `, "\xff\xff\xff\xff\xff\xff\xff\xff"} {
			b := []byte(`{"` + name + behind)
			if got := n.find(b, 2, 2+len(name)); got != want {
				t.Errorf("find(%q) in %q before %q = %d, want %d", name, names, behind, got, want)
			}
		}
	}
	names := []string{"aid", "inputs", "input_json", "request_id", "request_ie", "eightlen", "ninelett_", "\x00", ""}
	for i, name := range names {
		f(names, name, i)
	}
	for _, name := range []string{"a", "ai", "aidd", "AID", "input", "input_jso", "input_jsonn", "request_if", "eightle", "eightlenx", "\x00\x00", "é"} {
		f(names, name, -1)
	}
	f(nil, "", -1)
	f(nil, "a", -1)
	f([]string{"a", "b", "a"}, "a", 0) // a name given twice counts under its first position
	f([]string{"a", "b", "a"}, "b", 1)
}

func TestNamesKeepsTheirText(t *testing.T) {
	given := []string{"a", "b"}
	n := NewNames(given...)
	given[0] = "c"
	if n.Len() != 2 || n.Name(0) != "a" || n.Name(1) != "b" {
		t.Errorf("%d names: %s, %s", n.Len(), n.Name(0), n.Name(1))
	}
}

func TestManyNames(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("common_prefix_%d", i)
	}
	n := NewNames(names...)
	for i, name := range names {
		if got := n.find([]byte(name), 0, len(name)); got != i {
			t.Fatalf("find(%s) = %d, want %d", name, got, i)
		}
	}
	if got := n.find([]byte("common_prefix_1000"), 0, 18); got != -1 {
		t.Errorf("an unknown name is %d", got)
	}
}

// A name is found however its characters are spelled, and no other name is.
func TestFindEscaped(t *testing.T) {
	names := []string{"aid", "inputs", "input_json", "é世\U0001F600", "a\"\\/\b\f\n\r\t\x00", ""}
	n := NewNames(names...)
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.IntRange(0, len(names)-1).Draw(t, "name")
		raw := ""
		for _, r := range names[want] {
			raw += spellRune(t, r)
		}
		if got := n.findEscaped([]byte(raw)); got != want {
			t.Fatalf("findEscaped(%s) = %d, want %d", raw, got, want)
		}
		other := raw + spellRune(t, 'x')
		if got := n.findEscaped([]byte(other)); got != -1 {
			t.Fatalf("findEscaped(%s) = %d, want none", other, got)
		}
	})
}

// spellRune returns one of the ways to write r in a JSON string.
func spellRune(t *rapid.T, r rune) string {
	quoted := AppendString(nil, string(r))
	plain := string(quoted[1 : len(quoted)-1])
	switch rapid.IntRange(0, 2).Draw(t, "spelling") {
	case 0:
		return plain
	case 1:
		return strings.ReplaceAll(strings.ToUpper(escapeUnits(r)), `\U`, `\u`)
	}
	return escapeUnits(r)
}

// escapeUnits returns r as one or two \uXXXX escapes.
func escapeUnits(r rune) string {
	if r > 0xffff {
		r -= 0x10000
		return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func TestFindEscapedOfUncheckedText(t *testing.T) {
	n := NewNames("a", "\ufffd")
	for _, raw := range []string{`\`, `\u`, `\u12`, `\ud800\u`, `a\`, `\q`} {
		n.findEscaped([]byte(raw)) // must not panic
	}
}
