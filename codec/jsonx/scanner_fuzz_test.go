package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"
)

var fuzzNames = []string{"aid", "input_json", "request_id", "é", "a\"b", ""}

// referenceMember is what a known name has by encoding/json: its first value.
type referenceMember struct {
	raw   []byte
	there bool
}

// referenceScan is Scan written with the standard library: every rule on its own.
func referenceScan(t *testing.T, line []byte, maxDepth int) (r ScanResult, which int, members []referenceMember) {
	members, which = make([]referenceMember, len(fuzzNames)), -1
	switch {
	case !json.Valid(line) || !utf8.Valid(line) || depthOf(line) > maxDepth:
		return ScanInvalid, which, members
	case string(bytes.TrimSpace(line)) == "null":
		return ScanNull, which, members
	case bytes.TrimSpace(line)[0] != '{':
		return ScanNotObject, which, members
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.Token()
	for d.More() {
		key, _ := d.Token()
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			t.Fatalf("%q is valid and does not decode", line)
		}
		i := slices.Index(fuzzNames, key.(string))
		if i < 0 {
			continue
		}
		if members[i].there && which < 0 {
			which = i
		}
		if !members[i].there {
			members[i] = referenceMember{raw: raw, there: true}
		}
	}
	if which >= 0 {
		return ScanDuplicate, which, members
	}
	return ScanOK, which, members
}

// depthOf counts the open containers of valid text.
func depthOf(text []byte) (deepest int) {
	quoted, depth := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

func compareScan(t *testing.T, n *Names, line []byte, maxDepth int) {
	t.Helper()
	want, wantWhich, members := referenceScan(t, line, maxDepth)
	out := make([]Member, n.Len())
	r, which := n.Scan(line, maxDepth, out)
	if r != want || which != wantWhich {
		t.Fatalf("Scan(%q, %d) = %d, %d, want %d, %d", line, maxDepth, r, which, want, wantWhich)
	}
	for i, m := range out {
		compareMember(t, line, m, members[i])
	}
}

func compareMember(t *testing.T, line []byte, got Member, want referenceMember) {
	t.Helper()
	if !want.there {
		if got.Kind != Absent || got.Raw != nil || got.Escaped {
			t.Fatalf("%q: %d %q where there is nothing", line, got.Kind, got.Raw)
		}
		return
	}
	v := ValueOf(want.raw)
	if got.Kind != v.Kind || got.Escaped != (v.Kind == String && bytes.IndexByte(want.raw, '\\') >= 0) {
		t.Fatalf("%q: kind %d, escaped %v for %s", line, got.Kind, got.Escaped, want.raw)
	}
	if got.Kind != String {
		if !bytes.Equal(got.Raw, v.Raw) {
			t.Fatalf("%q: %q, want %q", line, got.Raw, v.Raw)
		}
		return
	}
	var text string
	if err := json.Unmarshal(want.raw, &text); err != nil {
		t.Fatal(err)
	}
	if meaning := got.Raw; string(AppendUnescaped(nil, meaning)) != text || !got.Escaped && string(meaning) != text {
		t.Fatalf("%q: %q, want %q", line, got.Raw, text)
	}
}

// compareBehind scans rest behind a known first member, and with it.
func compareBehind(t *testing.T, n *Names, rest []byte, maxDepth int) {
	t.Helper()
	head := `{"aid":"known"`
	line := append([]byte(head+","), rest...)
	want, got := make([]Member, n.Len()), make([]Member, n.Len())
	wantResult, wantWhich := n.Scan(line, maxDepth, want)
	result, which := n.ScanBehind(line, len(head), 0, []byte("known"), maxDepth, got)
	if result != wantResult || which != wantWhich {
		t.Fatalf("ScanBehind(%q, %d) = %d, %d, want %d, %d", line, maxDepth, result, which, wantResult, wantWhich)
	}
	for i := range want {
		if a, b := got[i], want[i]; a.Kind != b.Kind || a.Escaped != b.Escaped || string(a.Raw) != string(b.Raw) {
			t.Fatalf("%q: member %d is %d %q behind a known one, want %d %q", line, i, a.Kind, a.Raw, b.Kind, b.Raw)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text), uint8(32))
	}
	for _, text := range []string{
		`{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":1}","request_id":7}`, `{"aid":1,"\u0061id":2,"é":3,"\u00e9":4}`, `{"a\"b":[{}],"":null}`,
		`"request_id":7,"x":[]}`, ` "aid":"a" } `, `{"aid":1,"aid":2,}`, `{"request_id":"\ud800\udc00\ud800","x":{"aid":[1,{"aid":"}"}]}} `, "{\"aid\":\"\xff\"}", ` null`, `"aid"`,
	} {
		f.Add([]byte(text), uint8(3))
	}
	n := NewNames(fuzzNames...)
	f.Fuzz(func(t *testing.T, line []byte, maxDepth uint8) {
		compareScan(t, n, line, int(maxDepth))
		compareBehind(t, n, line, max(int(maxDepth), 1))
	})
}
