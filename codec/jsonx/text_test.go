package jsonx

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendUnescaped(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		if got := string(AppendUnescaped([]byte(">"), []byte(raw))); got != ">"+want {
			t.Errorf("AppendUnescaped(%q) = %q, want %q", raw, got[1:], want)
		}
	}
	f("", "")
	f("plain", "plain")
	f(`a\"b\\c\/d`, `a"b\c/d`)
	f(`\b\f\n\r\t`, "\b\f\n\r\t")
	f(`\u0041\u00e9\u4e16`, "A\u00e9\u4e16")
	f(`\u0000`, "\x00")
	f(`\ud834\udd1e`, "\U0001D11E")
	f(`\uD834\uDD1E!`, "\U0001D11E!")
	f(`\ud834`, "\ufffd")
	f(`\ud834x`, "\ufffdx")
	f(`\udd1e\ud834`, "\ufffd\ufffd")
	f(`\ud834\u0041`, "\ufffdA")
	f(`\ud834\ud834\udd1e`, "\ufffd\U0001D11E")
	f(`\ufffd`, "\ufffd")
}

func TestAppendUnescapedOfUncheckedText(t *testing.T) {
	for _, raw := range []string{`\`, `a\`, `\u`, `\u12`, `\u12zz`, `\ud834\u`, `\ud834\`, `\q`} {
		if got := AppendUnescaped(nil, []byte(raw)); !utf8.Valid(got) {
			t.Errorf("AppendUnescaped(%q) = %q, which is not UTF-8", raw, got)
		}
	}
}

type name string

func TestAppendString(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := string(AppendString([]byte(">"), s)); got != ">"+want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got[1:], want)
		}
		if got := string(AppendString([]byte(">"), []byte(s))); got != ">"+want {
			t.Errorf("AppendString([]byte(%q)) = %s, want %s", s, got[1:], want)
		}
	}
	f("", `""`)
	f("plain text of more than one word", `"plain text of more than one word"`)
	f(`"\`, `"\"\\"`)
	f("\b\f\n\r\t", `"\b\f\n\r\t"`)
	f("\x00\x1f\x7f", `"\u0000\u001f`+"\x7f\"")
	f("</&>\u2028", "\"</&>\u2028\"")
	f("h\u00e9 \u4e16\U0001F600", "\"h\u00e9 \u4e16\U0001F600\"")
	f("a\xffb\xe4\xb8", "\"a\ufffdb\ufffd\ufffd\"")
	if got := string(AppendString(nil, name("n"))); got != `"n"` {
		t.Errorf("AppendString of a string type = %s", got)
	}
	if got := string(AppendString(nil, []byte(nil))); got != `""` {
		t.Errorf("AppendString(nil) = %s", got)
	}
}

func TestAppendStringRoundTrip(t *testing.T) {
	for c := range 0x250 {
		for _, pad := range []string{"", "abcdefg", "abcdefgh"} {
			s := pad + string(rune(c)) + pad
			out := AppendString(nil, s)
			if p := Check(out, 0); !p.OK() {
				t.Fatalf("AppendString(%q) = %s: %v", s, out, p)
			}
			if got := string(AppendUnescaped(nil, out[1:len(out)-1])); got != s {
				t.Fatalf("round trip of %q = %q", s, got)
			}
			var std string
			if err := json.Unmarshal(out, &std); err != nil || std != s {
				t.Fatalf("encoding/json reads %s as %q, %v", out, std, err)
			}
		}
	}
}

// Runs are copied in another way where there is room behind them: the result is the same.
func TestTextsInAnyRoom(t *testing.T) {
	piece := []string{"a", "bcdefghi", `"`, `\`, "\n", "\x01", "\u00e9", "\xff", `{"k":`}
	for n := range 9 * 9 * 9 * 9 {
		s := piece[n%9] + piece[n/9%9] + piece[n/81%9] + piece[n/729]
		var quoted []byte
		for i := range len(s) { // a character at a time, that of an invalid byte in the middle of one included
			if utf8.RuneStart(s[i]) {
				_, size := utf8.DecodeRuneInString(s[i:])
				one := AppendString(nil, s[i:i+size])
				quoted = append(quoted, one[1:len(one)-1]...)
			}
		}
		for room := range 2*shortRun + 4 {
			got := AppendString(append(make([]byte, 0, room+1), '>'), s)
			if string(got) != ">\""+string(quoted)+"\"" {
				t.Fatalf("room %d: AppendString(%q) = %s, want %s", room, s, got, quoted)
			}
			want := ">" + strings.ToValidUTF8(s, "\ufffd")
			if got := AppendUnescaped(append(make([]byte, 0, room+1), '>'), quoted); utf8.ValidString(s) && string(got) != want {
				t.Fatalf("room %d: AppendUnescaped(%s) = %q, want %q", room, quoted, got, want)
			}
		}
	}
}
