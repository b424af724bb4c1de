package fuzz

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The types of envelope §3.2, as boundary B has them (§3.3).

func isText(v any) bool { _, ok := v.(string); return ok }

func isID(v any) bool { s, ok := v.(string); return ok && len(s) <= 1024 }

func isFlag(v any) bool { _, ok := v.(bool); return ok }

func isObject(v any) bool { _, ok := v.(object); return ok }

func isI64(v any) bool { n, ok := v.(int64); return ok && n >= 0 }

func isI32(v any) bool { return isI64(v) && v.(int64) <= math.MaxInt32 }

func isOutputs(v any) bool {
	return mapOf(func(v any) bool { return v == nil || isObject(v) })(v)
}

func isStageSet(v any) bool { return listOf(isText)(v) || mapOf(isFlag)(v) }

func listOf(fits func(any) bool) func(any) bool {
	return func(v any) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !fits(v) })
	}
}

func mapOf(fits func(any) bool) func(any) bool {
	return func(v any) bool {
		o, ok := v.(object)
		return ok && !slices.ContainsFunc(o, func(m member) bool { return !fits(m.val) })
	}
}

var timeForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?([.,]\d{1,9})?(Z|z|[+-]\d\d(?::?\d\d)?)?$`)

// readTime is envelope §3.6.
func readTime(s string) (t time.Time, ok bool) {
	p := timeForm.FindStringSubmatch(s)
	if p == nil || p[3] == "" && p[4] != "" {
		return t, false
	}
	if p[3] == "" {
		p[3] = ":00"
	}
	zone := strings.ReplaceAll(strings.ToUpper(p[5]), ":", "")
	switch len(zone) {
	case 0:
		zone = "Z"
	case 3:
		zone += "00"
	}
	if len(zone) == 5 && (zone[1:3] > "23" || zone[3:] > "59") {
		return t, false
	}
	t, err := time.Parse("2006-01-02T15:04:05Z0700", p[1]+"T"+p[2]+p[3]+strings.Replace(p[4], ",", ".", 1)+zone)
	return t, err == nil
}

func isTime(v any) bool {
	s, ok := v.(string)
	if ok {
		_, ok = readTime(s)
	}
	return ok
}

// document reads a field that is a map or JSON text of one; what it holds is looked at later
// (envelope §3.1).
func (k *call) document(name string) any {
	v := k.field(name)
	switch v.(type) {
	case object, string:
	case nil:
		k.invalid("Missing required field: %s", name)
	default:
		k.invalid("%s must be an object", name)
	}
	return v
}

// parsed is the map of a document; kind begins the refusal.
func (k *call) parsed(v any, kind string) (o object) {
	if k.bad != nil {
		return nil
	}
	if text, isText := v.(string); isText {
		text = strings.TrimPrefix(text, byteOrderMark)
		if !json.Valid([]byte(text)) || jsonLevels(text) > 512 {
			k.bad = &refusal{code: "INVALID_ARGUMENT", message: beginning(kind)}
			return nil
		}
		v = jsonValue(text)
	}
	o, ok := v.(object)
	if !ok {
		k.bad = &refusal{code: "INVALID_ARGUMENT", message: beginning(kind)}
	}
	return o
}

const badEnvelope = "Invalid envelope: "

// envelope reads one, of either shape; nil after a refusal.
func (k *call) envelope(v any) *envelope {
	o := k.parsed(v, badEnvelope)
	if k.bad != nil {
		return nil
	}
	e := &envelope{doc: lastOnly(o), nulled: map[string]bool{}}
	id, _ := e.doc.get("identity")
	_, e.nested = id.(object)
	core := slices.ContainsFunc(coreKeys, e.doc.has)
	switch {
	case !e.nested && (id != nil || !core):
		k.invalid("%smissing field `identity`", badEnvelope)
	case e.nested:
		k.groups(e)
	}
	for i := range envKeys {
		k.member(e, &envKeys[i])
	}
	if k.bad != nil {
		return nil
	}
	return e
}

// groups checks what the nested shape must have.
func (k *call) groups(e *envelope) {
	for _, name := range envGroups {
		v, ok := e.doc.get(name)
		group, isMap := v.(object)
		switch {
		case isMap:
			e.doc.set(name, lastOnly(group))
		case v != nil || name == "pipeline" || name == "bounds":
			k.unfit() // which of several faults is reported is open
		case ok:
			e.doc.del(name)
		}
	}
	if id := e.get("envelope_id"); k.bad == nil && (id == nil || id == "") {
		k.unfit()
	}
}

func (k *call) unfit() {
	if k.bad == nil {
		k.bad = &refusal{code: "INVALID_ARGUMENT", message: beginning(badEnvelope)}
	}
}

// member checks one of the known members.
func (k *call) member(e *envelope, key *envKey) {
	if k.bad != nil || e.nested && key.group == "-" {
		return
	}
	v, ok := e.lookup(key.name)
	switch {
	case !ok:
	case v == nil && key.null:
	case v == nil:
		e.remove(key.name)
		e.nulled[key.name] = true
	case !key.fits(v):
		k.unfit()
	case key.name == "outputs":
		e.set("outputs", slices.DeleteFunc(lastOnly(v.(object)), func(m member) bool { return m.val == nil }))
	}
}
