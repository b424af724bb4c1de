package selector

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// maxMenu is the longest menu: more items have no SID, which is four digits (toolhost §3.7).
const maxMenu = 9999

const noopAID = "AID.NOOP.v1"

type candidate struct {
	*tool.Descriptor
	permitted bool // by the run's capabilities
}

// candidates applies the capabilities (toolhost §4.8): blocked wins, none allowed means all.
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

func (m menu) sid(sid string) *item {
	return m.first(func(it *item) bool { return it.sid == sid })
}

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

// digest returns the SHA-256, in hex, of "SIDdddd=<aid>:<sorted tags joined by ,>" joined by "|".
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

func (m menu) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for _, it := range m {
		dst = jsonx.Build(jsonx.AppendComma(dst)).Text("sid", it.sid).Text("aid", it.AID).Text("name", it.Name).
			Texts("tags", it.Tags).End()
	}
	return append(dst, ']')
}

// stageTools gives the tool that each stage of making a new tool calls for (toolhost §4.8, rule 1).
var stageTools = [...]struct{ stage, aid string }{
	{"", "AID.GENESIS.WRITE_FILE.v1"},
	{"WROTE", "AID.GENESIS.COMPILE_SHARED.v1"},
	{"COMPILED", "AID.GENESIS.LOAD_PLUGIN.v1"},
}

// tagOrder is the order in which tags are tried when nothing else decides (toolhost §4.8, rule 4).
var tagOrder = [...]string{"tag.error", "tag.gpu", "tag.fs", "tag.shell", "tag.net", tagMeta}

// heuristic chooses by the first of the five rules of toolhost §4.8 that fires.
func heuristic(m menu, goal string, v *view) Selection {
	if strings.Contains(goal, genesis) {
		if it := m.forStage(v.stage); it != nil {
			return picked(it)
		}
		if v.stage == "LOADED" {
			if it := m.tagged(tagRuntime); it != nil && !v.ds0 {
				return picked(it)
			}
			return noop()
		}
	}
	if v.wantsReport() {
		if it := m.tagged(tagReport); it != nil {
			return picked(it)
		}
	}
	for _, tag := range tagOrder {
		if it := m.tagged(tag); it != nil {
			return picked(it)
		}
	}
	return noop()
}

func (m menu) forStage(stage string) *item {
	for _, st := range stageTools {
		if st.stage == stage {
			return m.aid(st.aid)
		}
	}
	return nil
}

// picked returns the choice of an item, with the text a selector would have sent.
func picked(it *item) Selection {
	return Selection{Kind: Pick, SID: it.sid, Raw: "<PICK><" + it.sid + "><END>"}
}

func noop() Selection { return Selection{Kind: Noop, Raw: "<NOOP><END>"} }

// The slots that choosing looks at.
const (
	slotScan   = 0 // what a scan or a read found
	slotReport = 2
	slotBuild  = 6 // how far a generated tool is
	slotExtra  = 7
)

// genesis is what the goals begin with that make new tools.
const genesis = "goal.GENESIS"

// The tags that the rules of toolhost §4.8 name.
const (
	tagMeta    = "tag.meta"
	tagGenesis = "tag.genesis"
	tagRuntime = "tag.runtime"
	tagReport  = "tag.report"
)

// view is what choosing knows of a state: which slots are set, and the stage of DS6.
type view struct {
	ds0, ds2, ds6, ds7 bool
	stage              string
}

func viewOf(s *sessionstate.State) (v view) {
	_, v.ds0 = s.Get(slotScan)
	_, v.ds2 = s.Get(slotReport)
	_, v.ds7 = s.Get(slotExtra)
	build, set := s.Get(slotBuild)
	if v.ds6 = set; set {
		v.stage = stageOf([]byte(build.Content))
	}
	return v
}

func (v *view) wantsReport() bool { return v.ds0 && !v.ds2 }

// stageOf returns the last member "stage" of content, "" unless content is an object and that a
// string. Content is opaque: anything else is no fault.
func stageOf(content []byte) (stage string) {
	if !jsonx.Check(content, maxDepth).OK() {
		return ""
	}
	var v [1]jsonx.Value
	jsonx.Pick(content, []string{"stage"}, v[:])
	text, _ := v[0].Text()
	return string(text)
}

// baseTags returns the step tags that do not depend on the state, sorted, each once.
func baseTags(goal string, candidates []string) []string {
	tags := append(slices.Clone(candidates), tagMeta)
	if strings.HasPrefix(goal, genesis) {
		tags = append(tags, tagGenesis, tagRuntime)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// stepTags is the tags of one step: the base and, if the state wants it, tag.report.
type stepTags struct {
	base   []string
	report bool
}

func (t *stepTags) has(tag string) bool {
	if t.report && tag == tagReport {
		return true
	}
	_, found := slices.BinarySearch(t.base, tag)
	return found
}

// all returns the tags, sorted. It may share the base.
func (t *stepTags) all() []string {
	at, found := slices.BinarySearch(t.base, tagReport)
	if found || !t.report {
		return t.base
	}
	return slices.Insert(slices.Clone(t.base), at, tagReport)
}

// appendGoal appends the goal context to dst (toolhost §4.8 "Goal context").
func appendGoal(dst []byte, goal string, v *view, tags *stepTags) []byte {
	dst = append(append(dst, goal...), "|FLAGS:"...)
	for i, set := range [...]bool{v.ds0, v.ds2, v.ds6, v.ds7} {
		bit := byte('0')
		if set {
			bit = '1'
		}
		dst = append(append(dst, "DS0=DS2=DS6=DS7="[4*i:][:4]...), bit, ';')
	}
	dst = append(append(append(dst, "DS6_STAGE="...), v.stage...), ';')
	for _, tag := range tags.all() {
		dst = append(append(dst, '|'), tag...)
	}
	return dst
}
