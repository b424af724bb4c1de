package method

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"trunkline/codec/jsonx"
	"trunkline/codec/jsonx/document"
	"trunkline/handlers/threads/token"
)

// Input is the checked input of a method. Texts are parts of the document or of the Input's own
// memory: they are valid until the next Parse. An Input is not safe for concurrent use.
type Input struct {
	strict    jsonx.Strict
	documents map[*Row]*document.Decoder
	members   [numSlots]jsonx.Member
	texts     [numSlots][]byte
	numbers   [numSlots]int64
	given     uint64 // bit of each slot that was given

	lists   [2][][]byte // participants or add, and remove
	scratch []byte      // unescaped texts
	issues  []issue
	parent  string // field whose members are read; empty: the document
}

// keptScratch bounds the memory that an Input keeps.
const keptScratch = 64 << 10

// issue is what is wrong with a field (threads §3.4).
type issue struct {
	path          string
	index         int // in an array; -1: not
	code, message string
}

// maxIssues bounds the issues that are shown.
const maxIssues = 64

// maxDepth is the nesting of a document.
const maxDepth = 64

func (in *Input) has(s slot) bool { return in.given&(1<<s) != 0 }

// Parse applies gates G3 and G4 to a document: it is one JSON object with the fields of the method
// (threads §2.1, §3.2). It returns nil if it is. It does not allocate for a valid document without
// escapes in identifiers. checked is as Caller.Checked.
func (r *Row) Parse(in *Input, doc []byte, checked bool) *Fault {
	members := in.members[:len(r.fields)]
	if f := in.scan(r, doc, members, checked); f != nil {
		return f
	}
	return r.take(in, members)
}

// Picked is the members of an input that a surface picked. They are parts of its text.
type Picked struct{ members [numSlots]jsonx.Member }

// Pick reads the input that begins at i in a text, in one pass with the rest of it, and returns
// where it ends. ok is false unless it is written as most clients write it: Parse has to read it
// then.
func (r *Row) Pick(p *Picked, s *jsonx.Strict, text []byte, i int) (next int, ok bool) {
	return s.Pick(r.names, text, i, maxDepth, p.members[:])
}

// Take is Parse for an input that was picked.
func (r *Row) Take(in *Input, p *Picked) *Fault { return r.take(in, p.members[:len(r.fields)]) }

// take checks the fields.
func (r *Row) take(in *Input, members []jsonx.Member) *Fault {
	if cap(in.scratch) > keptScratch {
		in.scratch = nil
	}
	in.given, in.scratch, in.issues = 0, in.scratch[:0], in.issues[:0]
	in.lists[0], in.lists[1] = in.lists[0][:0], in.lists[1][:0]
	if in.fill(r.fields, members); len(in.issues) > 0 {
		return in.fault()
	}
	return nil
}

// fill takes the members of an object.
func (in *Input) fill(fields []Field, members []jsonx.Member) {
	for i := range fields {
		f, m := &fields[i], &members[i]
		if m.Kind == jsonx.Absent || m.Kind == jsonx.Null { // clients send null for what is not set
			if f.Required {
				in.wrong(f, -1, "required", "is required")
			}
			continue
		}
		if in.set(f, m) {
			in.given |= 1 << f.slot
		}
	}
}

// scan picks the members of the document.
func (in *Input) scan(r *Row, doc []byte, members []jsonx.Member, checked bool) *Fault {
	if checked {
		if result, _ := r.names.Scan(doc, maxDepth, members); result == jsonx.ScanOK {
			return nil
		}
	}
	return in.decode(r, doc, members)
}

// decode picks the members of a whole document of a peer: what no two readers may understand in two
// ways is refused first.
func (in *Input) decode(r *Row, doc []byte, members []jsonx.Member) *Fault {
	p := in.strict.Check(doc, maxDepth)
	if p.OK() && jsonx.ValueOf(doc).Kind != jsonx.ObjectStart {
		p = jsonx.Problem{Kind: jsonx.NotObject}
	}
	if !p.OK() {
		return Malformed("body", p, doc)
	}
	d := in.documents[r]
	if d == nil {
		if in.documents == nil {
			in.documents = map[*Row]*document.Decoder{}
		}
		d = document.NewDecoder(r.names)
		in.documents[r] = d
	}
	if err := d.Decode(doc, members); err != nil {
		return &Fault{Condition: Invalid, Message: "the body is not one valid JSON object"}
	}
	return nil
}

// maxShownKey is how many bytes of a key are shown.
const maxShownKey = 64

// Malformed is the fault of a document, which is called what, that cannot be read.
func Malformed(what string, p jsonx.Problem, doc []byte) *Fault {
	f := &Fault{Condition: Invalid, Message: "the " + what + " is not one valid JSON object: " + p.String()}
	if p.Kind == jsonx.DuplicateKey {
		key := jsonx.AppendString(nil, jsonx.Clip(jsonx.AppendUnescaped(nil, p.Key(doc)), maxShownKey))
		issue := jsonx.Build(nil).Raw("path", []byte("[]")).Text("code", "duplicate_key").Text("message", "it has the key "+string(key)+" twice in one object").End()
		f.Details = append(append([]byte(`{"issues":[`), issue...), `]}`...)
	}
	return f
}

func (in *Input) wrong(f *Field, index int, code, message string) bool {
	if path := strings.TrimPrefix(in.parent+"."+f.Name, "."); len(in.issues) < maxIssues {
		in.issues = append(in.issues, issue{path: path, index: index, code: code, message: path + " " + message})
	}
	return false
}

// fault returns the refusal with all issues.
func (in *Input) fault() *Fault {
	b := append([]byte(nil), `{"issues":[`...)
	for i, is := range in.issues {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.AppendString(append(b, `{"path":[`...), is.path)
		if is.index >= 0 {
			b = fmt.Append(b, ",", is.index)
		}
		b = jsonx.Builder(append(b, ']')).Text("code", is.code).Text("message", is.message).End()
	}
	return &Fault{Condition: Invalid, Message: in.issues[0].message, Details: append(b, `]}`...)}
}

// set takes the value of a field.
func (in *Input) set(f *Field, m *jsonx.Member) bool {
	switch f.Type {
	case Integer:
		return in.integer(f, m)
	case Bool:
		if m.Kind != jsonx.True && m.Kind != jsonx.False {
			return in.wrong(f, -1, "invalid_type", "is not a boolean")
		}
		in.numbers[f.slot] = 0
		if m.Kind == jsonx.True {
			in.numbers[f.slot] = 1
		}
		return true
	case Object:
		return in.object(f, m)
	case IDs:
		return in.ids(f, m)
	case Moment:
		return in.moment(f, m)
	}
	if m.Kind != jsonx.String {
		return in.wrong(f, -1, "invalid_type", "is not a string")
	}
	switch f.Type {
	case Enum:
		text := in.text(m.Raw, m.Escaped)
		n := slices.IndexFunc(f.Values, func(v string) bool { return v == string(text) })
		if in.numbers[f.slot] = int64(n); n < 0 {
			return in.wrong(f, -1, "invalid_enum_value", "is none of "+strings.Join(f.Values, ", "))
		}
		return true
	case Text:
		if text := in.text(m.Raw, m.Escaped); len(bytes.TrimFunc(text, isSpace)) == 0 {
			return in.wrong(f, -1, "too_small", "has no visible character")
		}
		in.texts[f.slot] = m.Raw
		return true
	}
	if n := len(m.Raw); m.Plain && n > 0 && n <= f.longest() && m.Raw[0] != ' ' && m.Raw[n-1] != ' ' { // nearly always
		in.texts[f.slot] = m.Raw
		return true
	}
	text, code, message := in.name(f, m.Raw, m.Escaped)
	if code != "" {
		return in.wrong(f, -1, code, message)
	}
	in.texts[f.slot] = text
	return true
}

// text undoes the escapes of a string.
func (in *Input) text(raw []byte, escaped bool) []byte {
	if !escaped {
		return raw
	}
	start := len(in.scratch)
	in.scratch = jsonx.AppendUnescaped(in.scratch, raw)
	return in.scratch[start:len(in.scratch):len(in.scratch)]
}

// isSpace reports whether identifiers are trimmed by r (threads §3.2).
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }

// name reads a text of one of the types ID, Key and Line.
func (in *Input) name(f *Field, raw []byte, escaped bool) (text []byte, code, message string) {
	text = bytes.TrimFunc(in.text(raw, escaped), isSpace)
	switch most := f.longest(); {
	case len(text) == 0:
		return nil, "too_small", "is empty"
	case len(text) > most:
		return nil, "too_big", fmt.Sprintf("has %d bytes, at most %d", len(text), most)
	case !printable(text, f.Type == Line):
		return nil, "invalid_string", "has control characters"
	}
	return text, "", ""
}

// printable reports that text has no C0 or C1 control character and no DEL. A line may have tabs,
// and C1.
func printable(text []byte, line bool) bool {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' && !(line && c == '\t') || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if !line && r < 0xa0 {
			return false
		}
		i += n
	}
	return true
}

func (in *Input) integer(f *Field, m *jsonx.Member) bool {
	if m.Kind != jsonx.Number {
		return in.wrong(f, -1, "invalid_type", "is not an integer")
	}
	n, ok := jsonx.ParseInt(m.Raw)
	if !ok {
		n, ok = jsonx.Integral(m.Raw)
	}
	switch {
	case !ok && jsonx.ParseNumber(m.Raw).Float < float64(f.Min):
		return in.wrong(f, -1, "too_small", fmt.Sprintf("is less than %d", f.Min))
	case !ok && jsonx.ParseNumber(m.Raw).Float > float64(f.Max):
		return in.wrong(f, -1, "too_big", fmt.Sprintf("is more than %d", f.Max))
	case !ok:
		return in.wrong(f, -1, "invalid_type", "is not an integer")
	case f.Min == f.Max && n != f.Min:
		return in.wrong(f, -1, "invalid_literal", fmt.Sprintf("is not %d", f.Min))
	case n < f.Min:
		return in.wrong(f, -1, "too_small", fmt.Sprintf("is less than %d", f.Min))
	case n > f.Max:
		return in.wrong(f, -1, "too_big", fmt.Sprintf("is more than %d", f.Max))
	}
	in.numbers[f.slot] = n
	return true
}

func (in *Input) object(f *Field, m *jsonx.Member) bool {
	if m.Kind != jsonx.ObjectStart {
		return in.wrong(f, -1, "invalid_type", "is not an object")
	}
	if f.Fields != nil {
		members := make([]jsonx.Member, len(f.Fields))
		namesOf(f.Fields).Scan(m.Raw, maxDepth, members) // the document was checked
		in.parent = f.Name
		in.fill(f.Fields, members)
		in.parent = ""
		return true
	}
	start := len(in.scratch)
	in.scratch = append(in.scratch, m.Raw...)
	compact := jsonx.Compact(in.scratch[start:])
	in.scratch = in.scratch[:start+len(compact)]
	switch {
	case len(compact) > maxMetadata:
		return in.wrong(f, -1, "too_big", fmt.Sprintf("has %d bytes, at most %d", len(compact), maxMetadata))
	case jsonx.Check(compact, metadataDepth).Kind != jsonx.Fine:
		return in.wrong(f, -1, "too_big", fmt.Sprintf("is nested deeper than %d", metadataDepth))
	}
	in.texts[f.slot] = compact[:len(compact):len(compact)]
	return true
}

// moment reads a time: RFC 3339, rounded up, or milliseconds since 1970.
func (in *Input) moment(f *Field, m *jsonx.Member) bool {
	if m.Kind == jsonx.Number {
		return in.integer(f, m)
	}
	var t time.Time
	if m.Kind != jsonx.String || t.UnmarshalText(in.text(m.Raw, m.Escaped)) != nil {
		return in.wrong(f, -1, "invalid_string", "is neither a time as in RFC 3339 nor milliseconds since 1970")
	}
	in.numbers[f.slot] = t.Add(time.Millisecond - 1).UnixMilli()
	return true
}

func (in *Input) ids(f *Field, m *jsonx.Member) bool {
	if m.Kind != jsonx.ArrayStart {
		return in.wrong(f, -1, "invalid_type", "is not an array")
	}
	before, to := len(in.issues), &in.lists[0]
	if f.slot == slotRemove {
		to = &in.lists[1]
	}
	list := jsonx.OpenArray(m.Raw)
	for i := 0; ; i++ {
		v, ok := list.Next()
		if !ok {
			break
		}
		if i == maxParticipants {
			return in.wrong(f, -1, "too_big", fmt.Sprintf("has more than %d entries", maxParticipants))
		}
		if v.Kind != jsonx.String {
			in.wrong(f, i, "invalid_type", "has an entry that is not a string")
			continue
		}
		raw := v.Raw[1 : len(v.Raw)-1]
		text, code, message := in.name(f, raw, bytes.IndexByte(raw, '\\') >= 0)
		switch {
		case code != "":
			in.wrong(f, i, code, "has an entry that "+message)
		case slices.ContainsFunc(*to, func(p []byte) bool { return bytes.Equal(p, text) }):
			in.wrong(f, i, "not_unique", "has an entry twice")
		default:
			*to = append(*to, text)
		}
	}
	if len(in.issues) == before && len(*to) == 0 {
		return in.wrong(f, -1, "too_small", "is empty")
	}
	return len(in.issues) == before
}

// CheckClaims applies gate G6: the workspace, then the hints, are those of the token (threads
// §3.1).
func (in *Input) CheckClaims(c *token.Claims) *Fault {
	const all = 1<<(slotSenderSession+1) - 1<<slotWorkspace
	if in.given&all == 0 {
		return nil
	}
	if in.has(slotWorkspace) && string(in.texts[slotWorkspace]) != c.Workspace {
		return &Fault{Condition: OtherWorkspace, Message: "workspace_id is not the workspace of the token"}
	}
	for s := slotAgent; s <= slotSenderSession; s++ {
		if !in.has(s) {
			continue
		}
		claim, name := c.Agent, ""
		switch s {
		case slotAgent:
			name = "agent_id"
		case slotSession:
			claim, name = c.Session, "session_id"
		case slotRole:
			claim, name = c.Role.String(), "role"
		case slotCreatedBy:
			name = "created_by"
		case slotSender:
			name = "sender_agent_id"
		case slotSenderSession:
			claim, name = c.Session, "sender_session_id"
		}
		if string(in.texts[s]) != claim {
			return &Fault{Condition: ClaimMismatch, Message: `hint "` + name + `" differs from the verified claim`,
				Details: jsonx.Build(nil).Text("hint", name).End()}
		}
	}
	return nil
}
