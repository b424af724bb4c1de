package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// render prints one frame as its type and JSON twin, cut down as the command asks.
func (s *script) render(f received, d *datadriven.TestData) string {
	s.t.Helper()
	line := f.name() + " " + s.cut(f.twin, d)
	if f.flaw != "" {
		line += " — " + f.flaw
	}
	if size := len(f.raw) - 4; size > s.limit {
		line += fmt.Sprintf(" — %d bytes exceed the frame bound %d", size, s.limit)
	}
	return line
}

func (s *script) cut(twin string, d *datadriven.TestData) string {
	s.t.Helper()
	arg := func(key string) []string {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				return a.Vals
			}
		}
		return nil
	}
	if name := arg("save"); name != nil {
		s.save(name, parseTwin(twin).get("body"))
	}
	if d.HasArg("sorted") {
		twin = parseTwin(twin).sorted().String()
	}
	if keys := arg("only"); keys != nil {
		twin = parseTwin(twin).keep(keys).String()
	}
	if paths := arg("show"); paths != nil {
		twin = parseTwin(twin).shown(paths)
	}
	for _, key := range arg("mask") {
		twin = mask(twin, key)
	}
	return foldRuns(twin)
}

// node is one JSON value with the order of its keys.
type node struct {
	scalar string // JSON text of a scalar
	keys   []string
	kids   []*node
	object bool
	array  bool
	elided bool
}

func parseTwin(text string) *node {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	n, err := parseNode(dec)
	if err != nil && err != io.EOF {
		return &node{scalar: text}
	}
	return n
}

func parseNode(dec *json.Decoder) (*node, error) {
	tok, err := dec.Token()
	if err != nil {
		return new(node), err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return &node{scalar: scalarText(tok)}, nil
	}
	n := &node{object: delim == '{', array: delim == '['}
	for dec.More() {
		if n.object {
			key, err := dec.Token()
			if err != nil {
				return n, err
			}
			n.keys = append(n.keys, key.(string))
		}
		kid, err := parseNode(dec)
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, kid)
	}
	_, err = dec.Token()
	return n, err
}

func scalarText(tok json.Token) string {
	if num, ok := tok.(json.Number); ok {
		return num.String()
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(tok)
	return strings.TrimSuffix(b.String(), "\n")
}

// get returns the value of a key, an empty node without one.
func (n *node) get(key string) *node {
	if i := slices.Index(n.keys, key); i >= 0 {
		return n.kids[i]
	}
	return new(node)
}

// text returns a string's value, "" of anything else.
func (n *node) text() string {
	s, err := strconv.Unquote(n.scalar)
	if err != nil {
		return ""
	}
	return s
}

// keep drops the other keys of every map that has one of the given ones; the frame's own keys
// always stay.
func (n *node) keep(keys []string) *node {
	for i, kid := range n.kids {
		if n.object && (n.keys[i] == "body" || n.keys[i] == "error") {
			kid.filter(keys)
		}
	}
	return n
}

func (n *node) filter(keys []string) {
	wanted := func(key string) bool { return slices.Contains(keys, key) }
	if !n.object || !slices.ContainsFunc(n.keys, wanted) {
		for _, kid := range n.kids {
			kid.filter(keys)
		}
		return
	}
	kept := &node{object: true}
	for i, key := range n.keys {
		if wanted(key) {
			kept.keys, kept.kids = append(kept.keys, key), append(kept.kids, n.kids[i])
		} else {
			kept.elided = true
		}
	}
	*n = *kept
}

// String returns the value on one line, "…" in place of dropped keys.
func (n *node) String() string {
	if !n.object && !n.array {
		return n.scalar
	}
	var parts []string
	for i, kid := range n.kids {
		part := kid.String()
		if n.object {
			part = scalarText(n.keys[i]) + ":" + part
		}
		parts = append(parts, part)
	}
	if n.elided {
		parts = append(parts, "…")
	}
	if n.object {
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "[" + strings.Join(parts, ",") + "]"
}

var forms = map[string]struct {
	form *regexp.Regexp
	sign string
}{
	"request_id":    {regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), "<uuid>"},
	"session_id":    {regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), "<uuid>"},
	"subscriber_id": {regexp.MustCompile(`^ipc-sub-[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`), "<ipc-sub-uuid>"},
	"handler_id":    {regexp.MustCompile(`^ipc-hnd-[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`), "<ipc-hnd-uuid>"},
	"query_id":      {regexp.MustCompile(`^.{1,40}$`), "<query_id>"},
}

// mask replaces the value of a key when it has the form its generator must give (kernel-ipc §6); a
// value of another form stays visible. "message" stands for a sentence the contract leaves open,
// "tail" for one whose beginning it fixes.
func mask(twin, key string) string {
	switch key {
	case "message":
		return regexp.MustCompile(`"message":"(?:[^"\\]|\\.)*"`).ReplaceAllString(twin, `"message":"…"`)
	case "tail":
		return regexp.MustCompile(`("message":"[^":]*: )(?:[^"\\]|\\.)+"`).ReplaceAllString(twin, `${1}…"`)
	case "ids":
		return envelopeIDs.ReplaceAllString(twin, "${1}_<id>")
	case "next_cursor":
		return regexp.MustCompile(`"next_cursor":\d+`).ReplaceAllString(twin, `"next_cursor":<cursor>`)
	case "timestamp_ms":
		return regexp.MustCompile(`"timestamp_ms":\d+`).ReplaceAllStringFunc(twin, maskTime)
	}
	form := forms[key]
	for _, quote := range []string{`"`, `\"`} { // a key of the frame, and one inside a payload
		re := regexp.MustCompile(regexp.QuoteMeta(quote+key+quote+":"+quote) + `[^"\\]*` + regexp.QuoteMeta(quote))
		twin = re.ReplaceAllStringFunc(twin, func(pair string) string {
			head := quote + key + quote + ":" + quote
			value := pair[len(head) : len(pair)-len(quote)]
			if form.form == nil || !form.form.MatchString(value) {
				return pair
			}
			return head + form.sign + quote
		})
	}
	return twin
}

func maskTime(pair string) string {
	ms, err := strconv.ParseInt(strings.TrimPrefix(pair, `"timestamp_ms":`), 10, 64)
	if err != nil || time.Since(time.UnixMilli(ms)).Abs() > time.Minute {
		return pair
	}
	return `"timestamp_ms":<now>`
}

// foldRuns writes 65 or more equal characters as <x*65>.
func foldRuns(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j] == s[i] {
			j++
		}
		if j-i > 64 {
			fmt.Fprintf(&b, "<%c*%d>", s[i], j-i)
		} else {
			b.WriteString(s[i:j])
		}
		i = j
	}
	return b.String()
}
