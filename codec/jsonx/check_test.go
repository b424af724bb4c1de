package jsonx

import (
	"encoding/json"
	"strings"
	"testing"

	"trunkline/codec/wire"
)

func TestCheckAccepts(t *testing.T) {
	f := func(text string) {
		t.Helper()
		if p := Check([]byte(text), wire.MaxJSONDepth); !p.OK() || p != (Problem{}) {
			t.Errorf("Check(%q) = %v, want fine", text, p)
		}
	}
	for _, scalar := range []string{"0", "-0", "10", "-1.5", "1e9", "1E+9", "2.50e-3", "true", "false", "null", `""`, `"a b"`} {
		f(scalar)
		f(" \t\r\n" + scalar + " \t\r\n")
		f("[" + scalar + "]")
		f("[ " + scalar + " , " + scalar + " ]")
		f(`{"k":` + scalar + "}")
		f(`{ "k" : ` + scalar + ` , "" : [ ] }`)
	}
	f("{}")
	f("[[],{},[{}],{\"a\":[]}]")
	f(`{"a":1,"a":2}`)
	f(`"\"\\\/\b\f\n\r\t\u00e9\uD834\uDD1E\ud800"`)
	f("\"h\u00e9llo \u4e16\u754c \U0001F600 and then some plain text\"")
	f("\"\x7f\"")
}

func TestCheckRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Check([]byte(text), wire.MaxJSONDepth).String(); got != want {
			t.Errorf("Check(%q) = %q, want %q", text, got, want)
		}
	}
	f("", "unexpected end of input at offset 0")
	f(" \n", "unexpected end of input at offset 2")
	f("{bad", "unexpected character 'b' at offset 1")
	f("{", "unexpected end of input at offset 1")
	f("[", "unexpected end of input at offset 1")
	f("[1", "unexpected end of input at offset 2")
	f("[1,", "unexpected end of input at offset 3")
	f("[1,]", "unexpected character ']' at offset 3")
	f("[,1]", "unexpected character ',' at offset 1")
	f("[1 2]", "unexpected character '2' at offset 3")
	f("[1}", "unexpected character '}' at offset 2")
	f(`{"a"}`, "unexpected character '}' at offset 4")
	f(`{"a":}`, "unexpected character '}' at offset 5")
	f(`{"a":1,}`, "unexpected character '}' at offset 7")
	f(`{"a":1]`, "unexpected character ']' at offset 6")
	f(`{"a"`, "unexpected end of input at offset 4")
	f(`{1:2}`, "unexpected character '1' at offset 1")
	f("1 2", "unexpected character '2' after the value at offset 2")
	f("{}\x00", "unexpected character 0x00 after the value at offset 2")
	f("01", "unexpected character '1' after the value at offset 1")
	f("\ufeff1", "unexpected character 0xEF at offset 0")
	f("\v1", "unexpected character 0x0B at offset 0")
	f("+1", "unexpected character '+' at offset 0")
	f(".5", "unexpected character '.' at offset 0")
	f("-", "unexpected end of input at offset 1")
	f("-a", "unexpected character 'a' at offset 1")
	f("1.", "unexpected end of input at offset 2")
	f("1.e5", "unexpected character 'e' at offset 2")
	f("1e", "unexpected end of input at offset 2")
	f("1e+", "unexpected end of input at offset 3")
	f("1e+x", "unexpected character 'x' at offset 3")
	f("NaN", "unexpected character 'N' at offset 0")
	f("tru", "unexpected end of input at offset 3")
	f("trUe", "unexpected character 'U' at offset 2")
	f("nulL", "unexpected character 'L' at offset 3")
	f("'a'", "unexpected character ''' at offset 0")
}

func TestCheckRefusesStrings(t *testing.T) {
	// Every fault is put at each offset of the eight-byte words that the scan reads.
	f := func(fault, want string, shift int) {
		t.Helper()
		for n := range 20 {
			pad := strings.Repeat("x", n)
			p := Check([]byte(`"`+pad+fault), wire.MaxJSONDepth)
			if got, _, _ := strings.Cut(p.String(), " at offset "); got != want || p.Offset != 1+n+shift {
				t.Errorf("%q after %d bytes: %q, want %q at offset %d", fault, n, p, want, 1+n+shift)
			}
		}
	}
	f("", "unexpected end of input", 0)
	f("\x00\"", "unescaped control character 0x00", 0)
	f("\n\"", "unescaped control character 0x0A", 0)
	f("\x1f plain text\"", "unescaped control character 0x1F", 0)
	f("\x80\"", "invalid UTF-8", 0)
	f("\xc0\xaf\"", "invalid UTF-8", 0)
	f("\xed\xa0\x80\"", "invalid UTF-8", 0)
	f("\xf4\x90\x80\x80\"", "invalid UTF-8", 0)
	f("\u00e9\xe9\"", "invalid UTF-8", 2)
	f("\xe4\xb8", "invalid UTF-8", 0)
	f(`\`, "unexpected end of input", 1)
	f(`\x"`, "invalid escape character 'x'", 1)
	f(`\u12G4"`, "invalid escape character 'G'", 4)
	f(`\u12`, "unexpected end of input", 4)
	f(`\U0001"`, "invalid escape character 'U'", 1)
}

func TestCheckDepth(t *testing.T) {
	f := func(text string, maxDepth int, want string) {
		t.Helper()
		if got := Check([]byte(text), maxDepth).String(); got != want {
			t.Errorf("Check(%.20q…, %d) = %q, want %q", text, maxDepth, got, want)
		}
	}
	arrays := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"":`, n) + "1" + strings.Repeat("}", n) }
	f(arrays(128), 128, "")
	f(objects(128), 128, "")
	f(arrays(129), 128, "nesting deeper than 128 at offset 128")
	f("[1,"+arrays(128)+"]", 128, "nesting deeper than 128 at offset 130")
	f(objects(129), 128, "nesting deeper than 128 at offset 512")
	f(arrays(MaxDepth), MaxDepth, "")
	f(arrays(MaxDepth), MaxDepth+1, "")
	f(arrays(MaxDepth+1), MaxDepth+1, "nesting deeper than 512 at offset 512")
	f("["+strings.Repeat("[],", 1000)+"{}]", 2, "")
	f("7", 0, "")
	f("[]", 0, "nesting deeper than 0 at offset 0")
	f("[]", -1, "nesting deeper than 0 at offset 0")
	// The kind of every level survives the levels above it.
	mixed := strings.Repeat(`[{"":`, MaxDepth/2) + "1" + strings.Repeat("}]", MaxDepth/2)
	f(mixed, MaxDepth, "")
	f(strings.Replace(mixed, "}]}]", "}]]]", 1), MaxDepth, "unexpected character ']' at offset 1283")
}

func TestProblemAppend(t *testing.T) {
	if got := string(Problem{}.Append([]byte("x"))); got != "x" {
		t.Errorf("Append of no problem = %q, want nothing added", got)
	}
	p := Check([]byte("[tru]"), 8)
	if p.OK() || p.Kind != UnexpectedChar || p.Offset != 4 {
		t.Errorf("problem = %+v", p)
	}
	if got := string(p.Append([]byte("Invalid JSON payload: "))); got != "Invalid JSON payload: unexpected character ']' at offset 4" {
		t.Errorf("Append = %q", got)
	}
	long := Check([]byte(strings.Repeat(" ", 5<<20)+"1 x"), 8)
	if n := len(long.String()); n > 64 {
		t.Errorf("text is %d bytes, want at most the documented 64", n)
	}
}

func TestCheckAgreesWithStandardLibrary(t *testing.T) {
	// Each prefix and each one-byte damage of a text that holds every construct.
	text := []byte(`{"a":[1,-2.5e+10,0,true,false,null,"x\n\u00e9\\"],"":{}, "é":[[ ]] }`)
	for i := range text {
		compareValid(t, text[:i])
		for _, c := range []byte("\"\\{}[]:,01eE.+-tfnu \x00x") {
			damaged := append([]byte(nil), text...)
			damaged[i] = c
			compareValid(t, damaged)
		}
	}
	compareValid(t, text)
}

// compareValid checks b against encoding/json.Valid, which differs in two ways that are allowed
// for: it accepts bytes that are not UTF-8 inside strings, and it nests 10000 levels deep.
func compareValid(t *testing.T, b []byte) {
	t.Helper()
	p := Check(b, MaxDepth)
	if p.Offset < 0 || p.Offset > len(b) {
		t.Fatalf("offset %d outside a text of %d bytes", p.Offset, len(b))
	}
	if p.Kind == InvalidUTF8 || p.Kind == TooDeep {
		return
	}
	if valid := json.Valid(b); valid != p.OK() {
		t.Fatalf("Check(%q) = %q, encoding/json.Valid = %v", b, p, valid)
	}
}
