package envelope

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// The refusals that more than one class has, in the words of kernel-ipc §3.4.
const (
	wantText    = "must be a string"
	wantInt     = "must be an integer"
	wantFlag    = "must be a boolean"
	wantMap     = "must be an object"
	wantTexts   = "must be an array of strings"
	wantMaps    = "must be an array of objects"
	wantNames   = "must be an object of booleans or an array of strings"
	wantTextMap = "must be an object of strings"
	wantTime    = "must be an ISO 8601 time"
	tooLongID   = "exceeds 1024 bytes"
	priorKey    = "prior_outputs"
	maxCounter  = math.MaxInt32
)

// check validates every member of the input and sets the values that are computed with.
func (e *Env) check() *Problem {
	for k := range numKeys {
		f := &e.f[k]
		f.n = infos[k].def
		if f.raw == nil {
			f.text = infos[k].defText
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

// nullMember reads null as absent; where the default is something else, the reply shows that.
func (e *Env) nullMember(k Key) {
	f := &e.f[k]
	if e.form == MsgPack {
		f.raw = defaults[MsgPack][TerminalReason] // nil, also for a NaN, which reads as nil
	}
	f.kind = Null
	f.text = infos[k].defText
	switch infos[k].class {
	case nullText, nullMoment, nullFlag, nullMap:
		return
	}
	f.raw, f.kind, f.null = nil, Absent, true
}

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

// checkValue validates a value that is not null; why is empty if it is in order.
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
		if !e.holds(v, List, Map) {
			return wantMaps
		}
	case stageSet: // written in either of two ways
		if !e.holds(v, Map, Bool) && !e.holds(v, List, String) {
			return wantNames
		}
	case textMap:
		if k == GoalCompletionStatus && !e.trusted && e.tooLong(v) {
			return tooManyElements
		}
		if !e.holds(v, Map, String) {
			return wantTextMap
		}
	default:
		if v.Kind != Map {
			return wantMap
		}
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
	// Boundary A takes "" of these for missing (envelope §3.2); boundary B echoes it (§3.3).
	if len(f.text) == 0 && e.form == JSON && (infos[k].class == identifier || k == CurrentStage) {
		f.raw, f.kind, f.text = nil, Absent, infos[k].defText
	}
	return ""
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
		if m := mpack.ReadValue(v.Raw); e.form == MsgPack && m.Kind == mpack.BigUint {
			return "value " + strconv.FormatUint(uint64(m.Int), 10) + " exceeds " + width + " range"
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
	it := openList(e.form, v.Raw)
	for ; it.next(); n++ {
		switch {
		case n == maxElements && bounded:
			return tooManyElements
		case it.v.Kind != String:
			return wantTexts
		case !stages:
			continue
		}
		name := e.textOf(it.v)
		if len(name) == 0 {
			return "must not hold empty names"
		}
		if e.names.add(name) >= 0 {
			return "must not repeat a name"
		}
	}
	return ""
}

// tooLong reports whether a list or map has more than maxElements elements.
func (e *Env) tooLong(v Value) bool {
	n, list, m := 0, openList(e.form, v.Raw), openMap(e.form, v.Raw)
	for n <= maxElements && (list.next() || m.next()) {
		n++
	}
	return n > maxElements
}

// holds reports whether v is a list or map with members of one kind only. Of a repeated name in a
// map the last one counts.
func (e *Env) holds(v Value, container, want Kind) bool {
	if v.Kind != container {
		return false
	}
	if container == List {
		list := openList(e.form, v.Raw)
		for list.next() {
			if list.v.Kind != want {
				return false
			}
		}
		return true
	}
	m := openMap(e.form, v.Raw)
	for m.next() {
		if m.v.Kind != want {
			return e.lastMembers(v.Raw, want)
		}
	}
	return true
}

// lastMembers is holds for maps in which a name may be repeated.
func (e *Env) lastMembers(raw []byte, want Kind) bool {
	var names nameSet
	var wrong []bool
	it := openMap(e.form, raw)
	for it.next() {
		if before := names.add(e.unescape(it.name)); before >= 0 {
			wrong[before] = it.v.Kind != want
		} else {
			wrong = append(wrong, it.v.Kind != want)
		}
	}
	return !slices.Contains(wrong, true)
}

// checkPrior validates the one member of metadata that the engine writes to.
func (e *Env) checkPrior() *Problem {
	v := e.Get(e.f[Metadata].raw, priorKey)
	if v.Kind == Absent || v.Kind == Null || v.Kind == Map {
		return nil
	}
	return &Problem{Field: e.path(Metadata) + "." + priorKey, Text: wantMap}
}

// documented lists the members that the published schema requires of an envelope; all of them may
// be missing (envelope D5).
var documented = [...]Key{EnvelopeID, RequestID, UserID, SessionID, RawInput, Outputs, CurrentStage, Terminated}

// Validate appends whether src is an envelope, everything that is wrong with it, and what differs
// from the published schema though it is accepted (envelope §4.4). It takes any text.
func (x *Engine) Validate(dst, src []byte) (out []byte) {
	var errors, warnings []string
	s := x.works.Get().(*step)
	defer x.close(s)
	e := &s.e
	e.reset(JSON)
	src = jsonx.TrimBOM(src)
	if p := jsonx.Check(src, jsonx.MaxDepth); !p.OK() {
		errors = append(errors, "Invalid JSON: "+p.String())
	} else {
		e.collect = func(p *Problem) { errors = append(errors, "Invalid envelope: "+p.Message()) }
		p := e.Decode(JSON, src)
		e.collect = nil
		if p != nil {
			errors = append(errors, "Invalid envelope: "+p.Message())
		} else {
			warnings = e.warnings()
		}
	}
	return fmt.Appendf(dst, `{"valid":%t,"errors":%s,"warnings":%s,"envelope_id":%s}`, len(errors) == 0,
		appendTexts(nil, JSON, errors), appendTexts(nil, JSON, warnings), quote(e.Text(EnvelopeID)))
}

// warnings lists what the published schema does not have.
func (e *Env) warnings() (list []string) {
	for _, k := range documented {
		if e.f[k].raw == nil {
			list = append(list, "missing field `"+e.path(k)+"`")
		}
	}
	for _, id := range [...]struct {
		k      Key
		prefix string
	}{{EnvelopeID, EnvelopePrefix}, {RequestID, requestPrefix}, {SessionID, sessionPrefix}} {
		if e.f[id.k].raw != nil && !isPattern(e.Text(id.k), id.prefix) {
			list = append(list, e.path(id.k)+" is not of the form "+id.prefix+" and 16 lower-case hexadecimal digits")
		}
	}
	if e.Reason() == OtherReason {
		list = append(list, e.path(TerminalReason)+" is not a known reason")
	}
	return list
}

func isPattern(s []byte, prefix string) bool {
	digits, ok := bytes.CutPrefix(s, []byte(prefix))
	return ok && len(digits) == 2*idBytes && len(bytes.TrimLeft(digits, "0123456789abcdef")) == 0
}
