package selector

import (
	"slices"
	"strings"

	"trunkline/codec/jsonx"
)

// reserved is what the keys begin with that a selector must not set (toolhost §4.8 "Patch merge").
var reserved = []string{"_system", "_queue", "_meta"}

// change is one member of a patch: the key as it is spelled and the text of the value.
type change struct {
	key, value []byte
	done       bool
}

// merge returns base with the members of patch set, key by key; both are texts of checked objects. A value is taken as it is spelled,
// and so are the members of base that the patch does not name. A key that is there already keeps its place, new ones follow in the
// order of the patch. Without a change base itself is returned; otherwise it allocates the result, and neither text is changed.
func merge(base, patch []byte) []byte {
	changes, order := readPatch(patch)
	if len(order) == 0 {
		return base
	}
	out := append(make([]byte, 0, len(base)+len(patch)), '{')
	o := jsonx.OpenObject(base)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		c := changes[meaning(key)]
		switch {
		case c == nil:
			out = appendMember(out, key, v.Raw)
		case !c.done:
			// A key that base repeats is written once: a reader the first of two must not see the old value.
			c.done = true
			out = appendMember(out, key, c.value)
		}
	}
	for _, c := range order {
		if !c.done {
			out = appendMember(out, c.key, c.value)
		}
	}
	return append(out, '}')
}

// readPatch returns what patch sets, by key and in order. Of a repeated key the last value counts (toolhost §2.4).
func readPatch(patch []byte) (byKey map[string]*change, order []*change) {
	byKey = make(map[string]*change)
	o := jsonx.OpenObject(patch)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		name := meaning(key)
		if slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		c := byKey[name]
		if c == nil {
			c = &change{key: key}
			byKey[name] = c
			order = append(order, c)
		}
		c.value = v.Raw
	}
	return byKey, order
}

// appendMember appends a member to an object that is open.
func appendMember(dst, key, value []byte) []byte {
	dst = append(append(append(jsonx.AppendComma(dst), '"'), key...), `":`...)
	return append(dst, value...)
}
