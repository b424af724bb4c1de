package envelope

import (
	"math"
	"slices"
	"strconv"

	"trunkline/codec/wire"
)

// The refusals that more than one class has, in the words of kernel-ipc §3.4.
const (
	wantText   = "must be a string"
	wantInt    = "must be an integer"
	wantFlag   = "must be a boolean"
	wantMap    = "must be an object"
	wantTexts  = "must be an array of strings"
	wantMaps   = "must be an array of objects"
	wantTime   = "must be an ISO 8601 time"
	tooLongID  = "exceeds 1024 bytes"
	priorKey   = "prior_outputs"
	maxCounter = math.MaxInt32
)

// check judges every member that stood in the input and fills in the values that are computed with.
func (e *Env) check() *Problem {
	for k := range numKeys {
		f := &e.f[k]
		f.n = infos[k].def
		if f.raw == nil {
			f.defaults(k)
			continue
		}
		if f.kind == Null {
			e.nullMember(k)
			continue
		}
		if p := e.checkMember(k, Value{f.kind, f.raw}); p != nil {
			if e.collect == nil {
				return p
			}
			e.collect(p)
		}
	}
	return nil
}

func (e *Env) checkMember(k Key, v Value) *Problem {
	if why := e.checkValue(k, v); why != "" {
		return &Problem{Field: e.path(k), Text: why}
	}
	switch {
	case k == Outputs:
		return e.readOutputs(v.Raw)
	case k == Metadata && e.form == JSON:
		return e.checkPrior()
	}
	return nil
}

func (f *field) defaults(k Key) {
	f.text = infos[k].defText
}

// nullMember reads null as absent; where the default is something else, the reply shows that.
func (e *Env) nullMember(k Key) {
	f := &e.f[k]
	if e.form == MsgPack {
		f.raw = defaultOf(MsgPack, TerminalReason) // nil, also for a NaN, which reads as nil
	}
	f.kind = Null
	f.defaults(k)
	switch infos[k].class {
	case nullText, nullMoment, nullFlag, nullMap:
		return
	}
	f.raw, f.kind, f.null = nil, Absent, true
}

// path spells where a member stands.
func (e *Env) path(k Key) string {
	name := k.name(e.shape)
	switch {
	case k == LoopFeedback && e.newerFeedback:
		name = loopFeedback
	case k == ParallelMode && e.olderMode:
		name = dagMode
	}
	if g := infos[k].group; e.shape == Nested && g < numGroups {
		return groupNames[g] + "." + name
	}
	return name
}

// checkValue judges a value that is not null; why is empty if it is in order.
func (e *Env) checkValue(k Key, v Value) (why string) {
	switch infos[k].class {
	case text, nullText, identifier:
		return e.checkText(k, v)
	case moment, nullMoment:
		if v.Kind != String {
			return wantText
		}
		if e.f[k].text = e.textOf(v); !validTime(e.f[k].text) {
			return wantTime
		}
	case counter, wideCounter:
		return e.checkCounter(k, v)
	case flag, nullFlag:
		if v.Kind != Bool {
			return wantFlag
		}
		if v.true() {
			e.f[k].n = 1
		}
	case texts:
		return e.checkTexts(k, v)
	case objects:
		return e.checkElements(v, Map, wantMaps)
	case stageSet:
		return e.checkNameSet(v)
	case textMap:
		if k == GoalCompletionStatus && !e.trusted && e.tooLong(v) {
			return tooManyElements
		}
		return e.checkTextMap(v)
	default:
		return checkMap(v)
	}
	return ""
}

func (e *Env) checkText(k Key, v Value) string {
	if v.Kind != String {
		return wantText
	}
	f := &e.f[k]
	f.text = e.textOf(v)
	if infos[k].class == identifier && len(f.text) > wire.MaxIdentifier {
		return tooLongID
	}
	if len(f.text) == 0 && e.emptyIsMissing(k) {
		f.raw, f.kind, f.text = nil, Absent, nil
		f.defaults(k)
	}
	return ""
}

// emptyIsMissing marks the members whose "" counts as missing (envelope §3.2); boundary B echoes it
// (envelope §3.3).
func (e *Env) emptyIsMissing(k Key) bool {
	return e.form == JSON && (infos[k].class == identifier || k == CurrentStage)
}

func (e *Env) checkCounter(k Key, v Value) string {
	n, ok := integer(e.form, v)
	least := int64(0)
	if e.form == JSON {
		least = infos[k].min
	}
	limit, width := int64(maxCounter), "i32"
	if infos[k].class == wideCounter {
		limit, width = math.MaxInt64, "i64"
	}
	switch {
	case !ok:
		if n, huge := hugeInteger(e.form, v); huge {
			return "value " + strconv.FormatUint(n, 10) + " exceeds " + width + " range"
		}
		return wantInt
	case n < 0:
		return "must be non-negative, got " + strconv.FormatInt(n, 10)
	case n < least:
		return "must be at least " + strconv.FormatInt(least, 10)
	case n > limit:
		return "value " + strconv.FormatInt(n, 10) + " exceeds " + width + " range"
	}
	e.f[k].n = n
	return ""
}

func (e *Env) checkTexts(k Key, v Value) string {
	if v.Kind != List {
		return wantTexts
	}
	stages := k == StageOrder && e.form == JSON
	bounded := !e.trusted && k != LoopFeedback
	e.names.reset()
	n := 0
	for it := openList(e.form, v.Raw); ; n++ {
		el, ok := it.next()
		switch {
		case !ok:
			return ""
		case n == maxElements && bounded:
			return tooManyElements
		case el.Kind != String:
			return wantTexts
		case !stages:
			continue
		}
		name := e.textOf(el)
		if len(name) == 0 {
			return "must not hold empty names"
		}
		if e.names.add(name) >= 0 {
			return "must not repeat a name"
		}
	}
}

// tooLong reports whether a list or map has more than maxElements elements.
func (e *Env) tooLong(v Value) bool {
	n := 0
	if v.Kind == Map {
		for it := openMap(e.form, v.Raw); n <= maxElements; n++ {
			if _, _, _, ok := it.next(); !ok {
				break
			}
		}
		return n > maxElements
	}
	for it := openList(e.form, v.Raw); n <= maxElements; n++ {
		if _, ok := it.next(); !ok {
			break
		}
	}
	return n > maxElements
}

func (e *Env) checkElements(v Value, want Kind, why string) string {
	if v.Kind != List {
		return why
	}
	for it := openList(e.form, v.Raw); ; {
		el, ok := it.next()
		if !ok {
			return ""
		}
		if el.Kind != want {
			return why
		}
	}
}

// checkNameSet takes either way of writing a set of names.
func (e *Env) checkNameSet(v Value) string {
	const why = "must be an object of booleans or an array of strings"
	if v.Kind == List {
		return e.checkElements(v, String, why)
	}
	if v.Kind != Map || !e.allMembers(v.Raw, Bool) {
		return why
	}
	return ""
}

func (e *Env) checkTextMap(v Value) string {
	if v.Kind != Map || !e.allMembers(v.Raw, String) {
		return "must be an object of strings"
	}
	return ""
}

// allMembers reports whether every member that counts, which is the last one of its name, is of a
// kind.
func (e *Env) allMembers(raw []byte, want Kind) bool {
	for it := openMap(e.form, raw); ; {
		_, _, v, ok := it.next()
		if !ok {
			return true
		}
		if v.Kind != want {
			return e.lastMembers(raw, want)
		}
	}
}

// lastMembers is allMembers for maps in which a name may be repeated.
func (e *Env) lastMembers(raw []byte, want Kind) bool {
	var names nameSet
	var wrong []bool
	for it := openMap(e.form, raw); ; {
		_, name, v, ok := it.next()
		if !ok {
			return !slices.Contains(wrong, true)
		}
		if before := names.add(e.unescape(name)); before >= 0 {
			wrong[before] = v.Kind != want
		} else {
			wrong = append(wrong, v.Kind != want)
		}
	}
}

func checkMap(v Value) string {
	if v.Kind != Map {
		return wantMap
	}
	return ""
}

// checkPrior judges the one member of metadata that the engine writes to.
func (e *Env) checkPrior() *Problem {
	v := e.Get(e.f[Metadata].raw, priorKey)
	if v.Kind == Absent || v.Kind == Null || v.Kind == Map {
		return nil
	}
	return &Problem{Field: e.path(Metadata) + "." + priorKey, Text: wantMap}
}
