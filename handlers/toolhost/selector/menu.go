package selector

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// maxMenu is the longest menu: more items have no SID, which is four digits (toolhost §3.7).
const maxMenu = 9999

const noopAID = "AID.NOOP.v1"

// candidate is a registered tool as one run sees it.
type candidate struct {
	*tool.Descriptor
	permitted bool // by the run's capabilities
}

// candidates marks which of the tools the capabilities of a run let through: toolhost §4.8. Blocked
// wins, and nothing allowed by name means that everything is.
func candidates(tools []tool.Descriptor, allowed, blocked []string) []candidate {
	list := make([]candidate, len(tools))
	for i := range tools {
		aid := tools[i].AID
		fits := func(entry string) bool { return covers(entry, aid) }
		permitted := len(allowed) == 0 || slices.ContainsFunc(allowed, fits)
		list[i] = candidate{&tools[i], permitted && !slices.ContainsFunc(blocked, fits)}
	}
	return list
}

// covers reports whether an entry of the capabilities, an AID or a prefix ending in "*", means aid.
func covers(entry, aid string) bool {
	if prefix, ok := strings.CutSuffix(entry, "*"); ok {
		return strings.HasPrefix(aid, prefix)
	}
	return entry == aid
}

// item is one line of a menu.
type item struct {
	sid string
	*tool.Descriptor
}

func (it *item) has(tag string) bool { return slices.Contains(it.Tags, tag) }

// menu is what may be chosen in one step, in the order of the SIDs.
type menu []item

// newMenu picks the tools that have any of the tags; list is sorted by AID. What a run must not use
// leaves a gap in the numbers, so that a SID means the same tool whatever is permitted.
func newMenu(list []candidate, tags *stepTags) (m menu) {
	n := 0
	add := func(c candidate) {
		if n++; n <= maxMenu && c.permitted {
			m = append(m, item{fmt.Sprintf("SID%0*d", sidDigits, n), c.Descriptor})
		}
	}
	var noop *candidate
	for i, c := range list {
		switch {
		case slices.ContainsFunc(c.Tags, tags.has):
			add(c)
		case c.AID == noopAID:
			noop = &list[i]
		}
	}
	if noop != nil {
		add(*noop)
	}
	return m
}

// sid returns the item of that SID, nil if there is none.
func (m menu) sid(sid string) *item {
	return m.first(func(it *item) bool { return it.sid == sid })
}

// aid returns the item of that tool, nil if there is none.
func (m menu) aid(aid string) *item {
	return m.first(func(it *item) bool { return it.AID == aid })
}

// tagged returns the item of the lowest SID with that tag, never AID.NOOP.v1; nil if there is none.
func (m menu) tagged(tag string) *item {
	return m.first(func(it *item) bool { return it.AID != noopAID && it.has(tag) })
}

func (m menu) first(fits func(*item) bool) *item {
	for i := range m {
		if fits(&m[i]) {
			return &m[i]
		}
	}
	return nil
}

// digest returns the menu_digest: SHA-256, in lower-case hexadecimal, of "SIDdddd=<aid>:<sorted tags joined by ,>" joined by "|".
func (m menu) digest() string {
	var text []byte
	for i := range m {
		if i > 0 {
			text = append(text, '|')
		}
		it := &m[i]
		text = append(append(append(text, it.sid...), '='), it.AID...)
		tags := slices.Sorted(slices.Values(it.Tags))
		text = append(append(text, ':'), strings.Join(tags, ",")...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// appendJSON appends the menu as a policy is shown it.
func (m menu) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for _, it := range m {
		dst = jsonx.Build(jsonx.AppendComma(dst)).Text("sid", it.sid).Text("aid", it.AID).Text("name", it.Name).
			Texts("tags", it.Tags).End()
	}
	return append(dst, ']')
}
