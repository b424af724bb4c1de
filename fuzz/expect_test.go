package fuzz

import (
	"fmt"
	"regexp"
	"strings"
)

// What the model expects of a frame is a value like those decode returns, in which the types of
// this file stand for what the contract leaves open.

// made is a text the server makes up once and repeats: expecting it the first time learns it.
type made struct {
	form *regexp.Regexp
	size int // bytes it takes
	now  string
}

var (
	uuidForm       = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	subscriberForm = regexp.MustCompile(`^ipc-sub-[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	handlerForm    = regexp.MustCompile(`^ipc-hnd-[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	queryForm      = regexp.MustCompile(`^.{1,40}$`)
)

func (m *made) text() string {
	if m.now == "" {
		return strings.Repeat("?", m.size)
	}
	return m.now
}

func (m *made) match(got any) error {
	s, ok := got.(string)
	if !ok || m.now == "" && !m.form.MatchString(s) || m.now != "" && m.now != s {
		return fmt.Errorf("got %v, want %q of the form %s", got, m.now, m.form)
	}
	m.now = s
	return nil
}

// textOf is the text of a string or a made one; ok is false while it is not known.
func textOf(v any) (s string, ok bool) {
	if m, is := v.(*made); is {
		return m.now, m.now != ""
	}
	return v.(string), true
}

type (
	// containing is a text with these words in it.
	containing string
	// beginning is a text that begins so.
	beginning string
	// jsonText is a text that is the JSON of the object, in any order and spelling.
	jsonText object
	// anyOf is any value of the example's type.
	anyOf struct{ example any }
	// lastOf is a value in whose maps the last of a repeated key counts.
	lastOf struct{ val any }
	// cursor is the position after a creation, in whatever number the server gives it.
	cursor struct {
		model *model
		after int
	}
)

// match compares what came with what was expected.
func match(want, got any) error {
	switch want := want.(type) {
	case *made:
		return want.match(got)
	case cursor:
		return want.model.learnCursor(want.after, got)
	case lastOf:
		return match(distinct(copied(want.val)), distinct(got))
	case anyOf:
		if fmt.Sprintf("%T", got) == fmt.Sprintf("%T", want.example) {
			return nil
		}
	case containing:
		if s, ok := got.(string); ok && strings.Contains(s, string(want)) {
			return nil
		}
	case beginning:
		if s, ok := got.(string); ok && strings.HasPrefix(s, string(want)) {
			return nil
		}
	case jsonText:
		s, ok := got.(string)
		if !ok || !validJSON(s) {
			return fmt.Errorf("got %v, want the JSON text of an object", got)
		}
		return match(object(want), jsonValue(s))
	case object:
		if got, ok := got.(object); ok {
			return matchObject(want, got)
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			return matchItems(want, got)
		}
	case int:
		if got == int64(want) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return fmt.Errorf("got %#v, want %#v", got, want)
}

func matchObject(want, got object) error {
	if len(want) != len(got) {
		return fmt.Errorf("got %d keys %v, want %d %v", len(got), got, len(want), want)
	}
	for _, m := range want {
		v, ok := got.get(m.key)
		if !ok {
			return fmt.Errorf("no key %s in %v", m.key, got)
		}
		if err := match(m.val, v); err != nil {
			return fmt.Errorf("%s: %w", m.key, err)
		}
	}
	return nil
}

func matchItems(want, got []any) error {
	for i := range want {
		if err := match(want[i], got[i]); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// distinct drops all but the last value of each key.
func distinct(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = distinct(v[i])
		}
	case object:
		at := map[string]int{}
		o := object{}
		for _, m := range v {
			if _, again := at[m.key]; !again {
				at[m.key] = len(o)
				o = append(o, member{key: m.key})
			}
			o[at[m.key]].val = distinct(m.val)
		}
		return o
	}
	return v
}

// sizeOf is the number of bytes a value takes on the wire.
func sizeOf(v any) int { return len(appendValue(nil, example(v), nil)) }

// example is a value that v matches.
func example(v any) any {
	switch v := v.(type) {
	case *made:
		return v.text()
	case containing:
		return string(v)
	case beginning:
		return string(v)
	case anyOf:
		return v.example
	case lastOf:
		return example(v.val)
	case cursor:
		return v.after
	case jsonText:
		return string(appendJSON(nil, object(v)))
	case object:
		o := make(object, len(v))
		for i, m := range v {
			o[i] = member{m.key, example(m.val)}
		}
		return o
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = example(v[i])
		}
		return items
	}
	return v
}

// expected is one frame the model expects.
type expected struct {
	typ     byte
	payload object
}

func (e expected) String() string { return fmt.Sprintf("%02X %v", e.typ, e.payload) }

const (
	request     = 0x01
	response    = 0x02
	streamChunk = 0x03
	streamEnd   = 0x04
	errorFrame  = 0xFF
)

// refusal is an error of kernel-ipc §3.5.
type refusal struct {
	code    string
	message any
	extras  object
}

func refuse(code, format string, args ...any) *refusal {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

func (r *refusal) with(key string, v any) *refusal {
	r.extras = append(r.extras, member{key, v})
	return r
}

func chunkFrame(id string, body object) expected {
	return expected{streamChunk, object{{"id", id}, {"body", body}}}
}

// size is the frame's length field.
func (e expected) size() int { return 1 + sizeOf(e.payload) }
