package selector

import (
	"slices"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
)

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

// viewOf looks at a state.
func viewOf(s *dsstate.State) (v view) {
	_, v.ds0 = s.Get(slotScan)
	_, v.ds2 = s.Get(slotReport)
	_, v.ds7 = s.Get(slotExtra)
	build, set := s.Get(slotBuild)
	if v.ds6 = set; set {
		v.stage = stageOf([]byte(build.Content))
	}
	return v
}

// wantsReport reports whether something was found and not reported yet.
func (v *view) wantsReport() bool { return v.ds0 && !v.ds2 }

// stageOf returns the member "stage" of content: "" unless content is a JSON object and the member, the last one of that name, is a
// string. An artifact's content is opaque, so anything else is no fault.
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

// meaning returns the text of the contents of a checked JSON string.
func meaning(raw []byte) string { return string(jsonx.AppendUnescaped(nil, raw)) }
