package selector

import "trunkline/codec/jsonx"

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
	// Patch is the text of a JSON object to merge into the inputs of the run, without space around it; empty if none was sent.
	Patch string
	// Raw is the selector's text as it came, or the reason why there is none.
	Raw string
}

// appendJSON appends the selection as the compact object of toolhost §3.7 to dst and returns the
// result. It allocates only if dst has no room.
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
