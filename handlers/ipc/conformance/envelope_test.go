package conformance

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What the conversations about envelopes need beside the rest: their key order is free, and their
// ids are generated.

// envelopeIDs are the generated ids (envelope §3.7).
var envelopeIDs = regexp.MustCompile(`\b(env|req|sess|int|conf)_[0-9a-f]{16}\b`)

// quoted is «…», the content of a string as it is.
var quoted = regexp.MustCompile(`«([^»]*)»`)

func quoteText(line string) string {
	return quoted.ReplaceAllStringFunc(line, func(m string) string {
		return scalarText(strings.TrimSuffix(strings.TrimPrefix(m, "«"), "»"))
	})
}

// substitute replaces $name by what was kept under the name, longer names first.
func (s *script) substitute(line string) string {
	names := slices.SortedFunc(maps.Keys(s.vars), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		line = strings.ReplaceAll(line, "$"+name, s.vars[name])
	}
	return line
}

// save keeps a value of a reply's body: save=name its query_id or next_cursor, save=(name,path) the
// value at the path.
func (s *script) save(args []string, body *node) {
	s.t.Helper()
	if len(args) == 1 {
		s.vars[args[0]] = body.get("query_id").text() + body.get("next_cursor").scalar
		return
	}
	v := body.at(args[1])
	if v == nil {
		return
	}
	s.vars[args[0]] = cmp.Or(v.text(), v.String())
}

// at returns the value at a path like envelope.outputs, nil if there is none; "." is the value
// itself.
func (n *node) at(path string) *node {
	if path == "." {
		return n
	}
	for key := range strings.SplitSeq(path, ".") {
		i := slices.Index(n.keys, key)
		if i < 0 {
			return nil
		}
		n = n.kids[i]
	}
	return n
}

// sorted returns the value with the keys of every map below "body" in order.
func (n *node) sorted() *node {
	for i, key := range n.keys {
		if key == "body" {
			n.kids[i].sortKeys()
		}
	}
	return n
}

func (n *node) sortKeys() *node {
	if n.object {
		order := make([]int, len(n.keys))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(n.keys[a], n.keys[b]) })
		keys, kids := make([]string, len(order)), make([]*node, len(order))
		for i, from := range order {
			keys[i], kids[i] = n.keys[from], n.kids[from]
		}
		n.keys, n.kids = keys, kids
	}
	for _, kid := range n.kids {
		kid.sortKeys()
	}
	return n
}

// shown prints a reply as its id and the values at some paths of its body; anything but a reply as
// it is.
func (n *node) shown(paths []string) string {
	body := n.get("body")
	if !body.object {
		return n.String()
	}
	parts := []string{n.get("id").text()}
	for _, path := range paths {
		text := "absent"
		if v := body.at(path); v != nil {
			text = v.sortKeys().String()
		}
		parts = append(parts, path+"="+text)
	}
	return strings.Join(parts, " ")
}
