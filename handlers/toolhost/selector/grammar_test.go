package selector

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestParseSelection(t *testing.T) {
	f := func(text string, kind Kind, sid, patch string) {
		t.Helper()
		s, ok := parseSelection(text)
		if want := (Selection{kind, sid, patch, text}); s != want || ok != (kind != Invalid) {
			t.Errorf("%q is %+v %v, want %+v", text, s, ok, want)
		}
	}
	pick := func(rest, patch string) {
		t.Helper()
		f("<PICK><SID0007>"+rest+"<END>", Pick, "SID0007", patch)
	}
	bad := func(text string) { t.Helper(); f(text, Invalid, "", "") }

	// toolhost §9K.
	f("<PICK><SID0007><INP64>eyJhIjoxfQ==</INP64><END>", Pick, "SID0007", `{"a":1}`)
	bad("<PICK><SID7><END>")
	bad("<PICK><SID0007>ok<END>")
	bad("<PICK><SID0007><INP>[1]</INP><END>")
	f("\n <NOOP><END>\r\n", Noop, "", "")

	f("<ASK_SUP><END>", AskSup, "", "")
	f(" \t<ASK_SUP>\r\n <END>\n", AskSup, "", "")
	f("\t<PICK> <SID0000>\r\n\t<END> ", Pick, "SID0000", "")
	f(" <PICK>\n<SID9999> <INP>\n{\"a\": 1}\t</INP>\n<END>\n", Pick, "SID9999", `{"a": 1}`)
	pick("", "")
	pick("<INP>{}</INP>", "{}")
	pick(`<INP>{"a":"</INP><END>"}</INP>`, `{"a":"</INP><END>"}`)
	pick(`<INP>{"a":1,"a":2}</INP>`, `{"a":1,"a":2}`)
	pick("<INP>{\"k\":\"\u00e9\\ud800\\u0000\"}</INP>", "{\"k\":\"\u00e9\\ud800\\u0000\"}")
	pick("<INP64>eyJhIjoxfQ</INP64>", `{"a":1}`)
	pick("<INP64>\r\neyJh\n\tIjox fQ= =\n</INP64>", `{"a":1}`)
	pick("<INP64>e30</INP64>", "{}")
	pick("<INP64>"+base64.StdEncoding.EncodeToString([]byte("\n{\"a\":[]} "))+"</INP64>", `{"a":[]}`)
	deep := strings.Repeat(`{"a":`, maxDepth-1) + "{}" + strings.Repeat("}", maxDepth-1)
	pick("<INP>"+deep+"</INP>", deep)
	bad(`<PICK><SID0007><INP>{"a":` + deep + "}</INP><END>")

	for _, text := range []string{
		"", " ", "<END>", "<NOOP>", "NOOP", "<noop><end>", "<NOOP><END>x", "x<NOOP><END>", "<NOOP>x<END>", "<NOOP><END><END>", "<NOOP><NOOP><END>",
		"<NOOP ><END>", "< NOOP><END>", "<NOOP><END >", "<NOOP>\v<END>", "<NOOP>\u00a0<END>", "\ufeff<NOOP><END>", "<NOOP><END>\x00", "<INVALID><END>",
		"<PICK><END>", "<PICK>", "<PICK><SID0007>", "<PICK><SID00007><END>", "<PICK><SID007><END>", "<PICK><sid0007><END>", "<PICK><SID000a><END>",
		"<PICK><SID+007><END>", "<PICK><SID\u0661\u0661\u0661\u0661><END>", "<PICK><SID0007 ><END>", "<PICK>SID0007<END>", "<PICK><SID0007<END>",
		"<PICK><SID0007><SID0008><END>", "<PICK>x<SID0007><END>", "<PICK SID0007><END>", "<SID0007><END>",
		"<PICK><SID0007><INP></INP><END>", "<PICK><SID0007><INP> </INP><END>", "<PICK><SID0007><INP>null</INP><END>", "<PICK><SID0007><INP>{}{}</INP><END>",
		"<PICK><SID0007><INP>{}x</INP><END>", "<PICK><SID0007><INP>{}</INP>x<END>", "<PICK><SID0007>x<INP>{}</INP><END>", "<PICK><SID0007><INP>{}<END>",
		"<PICK><SID0007><INP>{'a':1}</INP><END>", "<PICK><SID0007><INP>{\"a\":\"\xff\"}</INP><END>", "<PICK><SID0007><INP>{\"a\":NaN}</INP><END>",
		"<PICK><SID0007><INP>{}</INP><INP>{}</INP><END>", "<PICK><SID0007><INP>{}</INP64><END>", "<PICK><SID0007><INP64>{}</INP64><END>", "<PICK><SID0007></INP><END>",
		"<PICK><SID0007><INP64></INP64><END>", "<PICK><SID0007><INP64>====</INP64><END>", "<PICK><SID0007><INP64>eyJhIjoxfQ=</INP64><END>",
		"<PICK><SID0007><INP64>eyJhIjoxfQ===</INP64><END>", "<PICK><SID0007><INP64>ey-_</INP64><END>", "<PICK><SID0007><INP64>WzFd</INP64><END>",
		"<PICK><SID0007><INP64>e</INP64><END>", "<PICK><SID0007><INP64>eyJh\vIjoxfQ</INP64><END>", "<NOOP><INP>{}</INP><END>", "<ASK_SUP><SID0007><END>",
	} {
		bad(text)
	}
}

func TestSelectionJSON(t *testing.T) {
	f := func(s Selection, want string) {
		t.Helper()
		if got := string(s.appendJSON([]byte("x"))); got != "x"+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f(Selection{}, `{"kind":"INVALID","raw":""}`)
	f(Selection{Kind: Noop, Raw: "<NOOP><END>\r\n"}, `{"kind":"NOOP","raw":"<NOOP><END>\r\n"}`)
	f(Selection{Kind: AskSup, Raw: "\xff\x01"}, `{"kind":"ASK_SUP","raw":"`+"\ufffd"+`\u0001"}`)
	f(Selection{Pick, "SID0007", `{"a":"b"}`, "r"}, `{"kind":"PICK","sid":"SID0007","input_patch_json":"{\"a\":\"b\"}","raw":"r"}`)
}

var reference = regexp.MustCompile(`^(?s)[ \t\r\n]*(?:(<ASK_SUP>)|(<NOOP>)|<PICK>[ \t\r\n]*<(SID[0-9]{4})>(?:[ \t\r\n]*(?:<INP>(.*)</INP>|<INP64>([A-Za-z0-9+/= \t\r\n]*)</INP64>))?)[ \t\r\n]*<END>[ \t\r\n]*$`)

// byReference reads a selector's text in another way: one expression, and the standard library for
// what stands in it.
func byReference(text string) (s Selection) {
	s.Raw = text
	g := reference.FindStringSubmatchIndex(text)
	if g == nil {
		return s
	}
	group := func(n int) (string, bool) {
		if g[2*n] < 0 {
			return "", false
		}
		return text[g[2*n]:g[2*n+1]], true
	}
	if _, ok := group(1); ok {
		return Selection{Kind: AskSup, Raw: text}
	}
	if _, ok := group(2); ok {
		return Selection{Kind: Noop, Raw: text}
	}
	sid, _ := group(3)
	patch, sent := group(4)
	if code, ok := group(5); ok {
		code = regexp.MustCompile(`[ \t\r\n]`).ReplaceAllString(code, "")
		if n := len(code) % 4; n > 1 && !strings.Contains(code, "=") {
			code += "=="[n-2:]
		}
		b, err := base64.StdEncoding.DecodeString(code)
		if err != nil {
			return s
		}
		patch, sent = string(b), true
	}
	patch = strings.Trim(patch, " \t\r\n")
	if sent && !objectByReference(patch) {
		return s
	}
	return Selection{Pick, sid, patch, text}
}

func objectByReference(text string) bool {
	if !strings.HasPrefix(text, "{") || !utf8.ValidString(text) || !json.Valid([]byte(text)) {
		return false
	}
	depth, most := 0, 0
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if err != nil {
			return most <= maxDepth
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			most = max(most, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

func checkSelection(t rapid.TB, text string) {
	got, ok := parseSelection(text)
	if want := byReference(text); got != want || ok != (want.Kind != Invalid) {
		t.Fatalf("%q is %+v %v, want %+v", text, got, ok, want)
	}
}

func TestSelectionAgainstReference(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"<PICK>", "<NOOP>", "<ASK_SUP>", "<END>", "<INP>", "</INP>", "<INP64>", "</INP64>", "<SID0001>", "<SID7>",
			" ", "\n", "\t\r", "{}", `{"a":1}`, `{"b":"</INP>"}`, "[1]", "e30", "e30=", "eyJhIjoxfQ==", "=", "x", "\u00e9", "\xff", "<", ">"}),
		rapid.StringN(0, 3, -1),
	)
	space := rapid.SampledFrom([]string{"", "", "", " ", "\r\n", "\t \n", "x", "\v"})
	body := rapid.SampledFrom([]string{"", "{}", ` {"a":"<END>"} `, `{"a":}`, "[]", "e30=", " e3 0", "e30", "eyJhIjoxfQ=", `{"a":"</INP>"}`})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(piece, 0, 8).Draw(t, "any")
		if rapid.Bool().Draw(t, "shaped") {
			parts = []string{"<PICK>", "<SID0012>"}
			if tag := rapid.SampledFrom([]string{"", "INP", "INP64"}).Draw(t, "tag"); tag != "" {
				parts = append(parts, "<"+tag+">"+body.Draw(t, "body")+"</"+tag+">")
			}
			parts = append(parts, "<END>")
		}
		text := space.Draw(t, "space")
		for _, p := range parts {
			text += p + space.Draw(t, "space")
		}
		checkSelection(t, text)
	})
}
