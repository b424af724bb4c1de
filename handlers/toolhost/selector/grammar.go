package selector

import (
	"encoding/base64"
	"strings"

	"trunkline/codec/jsonx"
)

// maxDepth is how deep the inputs of a run and a patch to them may nest (toolhost §2.4).
const maxDepth = 32

const sidDigits = 4

// parseSelection reads the text of a selector. ok means that it has the grammar of toolhost §3.7;
// else the kind is Invalid. Raw is the text either way. It allocates the decoded patch.
func parseSelection(text string) (s Selection, ok bool) {
	rest, ok := strings.CutSuffix(trim(text), "<END>")
	if ok {
		s, ok = parseBody(trim(rest))
	}
	if !ok {
		s = Selection{Kind: Invalid}
	}
	s.Raw = text
	return s, ok
}

func parseBody(body string) (s Selection, ok bool) {
	switch body {
	case "<ASK_SUP>":
		return Selection{Kind: AskSup}, true
	case "<NOOP>":
		return Selection{Kind: Noop}, true
	}
	rest, ok := strings.CutPrefix(body, "<PICK>")
	if !ok {
		return s, false
	}
	s.Kind = Pick
	if s.SID, rest, ok = cutSID(trim(rest)); !ok {
		return s, false
	}
	if rest = trim(rest); rest == "" {
		return s, true
	}
	s.Patch, ok = parsePatch(rest)
	return s, ok
}

// cutSID takes "<SIDdddd>" off the front of text.
func cutSID(text string) (sid, rest string, ok bool) {
	tag, rest, ok := strings.Cut(text, ">")
	if !ok {
		return "", "", false
	}
	if sid, ok = strings.CutPrefix(tag, "<"); !ok {
		return "", "", false
	}
	digits, ok := strings.CutPrefix(sid, "SID")
	if !ok || len(digits) != sidDigits || strings.Trim(digits, "0123456789") != "" {
		return "", "", false
	}
	return sid, rest, true
}

// parsePatch reads either form of a patch. An empty one is no object, and so no patch.
func parsePatch(text string) (object string, ok bool) {
	if inner, found := within(text, "<INP>", "</INP>"); found {
		object = inner
	} else if inner, found := within(text, "<INP64>", "</INP64>"); found {
		if object, ok = decode64(inner); !ok {
			return "", false
		}
	}
	object = trim(object)
	return object, isObject(object)
}

func within(text, start, end string) (inner string, ok bool) {
	inner, ok = strings.CutPrefix(text, start)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, end)
}

// decode64 decodes the standard alphabet without white space. Padding is complete or missing.
func decode64(text string) (plain string, ok bool) {
	text = strings.Map(func(r rune) rune {
		if isSpace(r) {
			return -1
		}
		return r
	}, text)
	coding := base64.RawStdEncoding
	if strings.HasSuffix(text, "=") {
		coding = base64.StdEncoding
	}
	b, err := coding.DecodeString(text)
	return string(b), err == nil
}

// isObject reports whether text, without space around it, is a JSON object within maxDepth.
func isObject(text string) bool {
	return text != "" && text[0] == '{' && jsonx.Check([]byte(text), maxDepth).OK()
}

// trim drops the space of the grammar around text; it is also that of JSON.
func trim(text string) string { return strings.TrimFunc(text, isSpace) }

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' }

// Kind is what a selector decided (toolhost §3.7).
type Kind uint8

// The kinds of a selection. The zero Kind is Invalid: what was not decided chooses nothing.
const (
	Invalid Kind = iota // not a selection
	Pick                // a tool of the menu
	AskSup              // ask the supervisor the run
	Noop                // nothing more to do
)

var kindNames = [...]string{"INVALID", "PICK", "ASK_SUP", "NOOP"}

// String returns the kind as it is on the wire. It does not allocate.
func (k Kind) String() string { return kindNames[k%Kind(len(kindNames))] }

// Selection is the answer of a selector (toolhost §3.7).
type Selection struct {
	// Kind is what it decided.
	Kind Kind
	// SID is the item of the menu, "SID" and four digits; empty unless Kind is Pick.
	SID string
	// Patch is a JSON object to merge into the inputs, without space around it; "" for none.
	Patch string
	// Raw is the selector's text as it came, or the reason why there is none.
	Raw string
}

// appendJSON appends the selection as an object (toolhost §3.7), without allocations of its own.
func (s *Selection) appendJSON(dst []byte) []byte {
	o := jsonx.Build(dst).Text("kind", s.Kind.String())
	if s.SID != "" {
		o = o.Text("sid", s.SID)
	}
	if s.Patch != "" {
		o = o.Text("input_patch_json", s.Patch)
	}
	return o.Text("raw", s.Raw).End()
}
