package manifest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// maxAID is the longest AID that a request can name, in bytes (toolhost §6).
const maxAID = 256

// The grammars of toolhost §4.10.
const (
	packGrammar = `^toolpack\.[a-z0-9_\-\.]+$`
	aidGrammar  = `^AID\.[A-Z0-9_\-\.]+\.v\d+$`
)

var (
	packID = regexp.MustCompile(packGrammar)
	aidID  = regexp.MustCompile(aidGrammar)

	trustTiers = []string{"tier0_builtin", "tier1_signed", "tier2_untrusted"}
	noEffects  = []string{"none"}

	packNames     = jsonx.NewNames("toolpack_id", "toolpack_version", "trust_tier", "tools")
	toolNames     = jsonx.NewNames("aid", "name", "deterministic", "tags", "estimate_model", "inputs_schema", "outputs_schema", "side_effects", "replay_inputs", "tier", "exec")
	estimateNames = jsonx.NewNames("mode")
)

const (
	packIDMember = iota
	packVersion
	packTrust
	packTools
)

const (
	toolAID = iota
	toolName
	toolDeterministic
	toolTags
	toolEstimate
	toolInputs
	toolOutputs
	toolEffects
	toolReplay
	toolTier
	toolExec
)

// trust is the place of a toolpack in trustTiers.
type trust int

const (
	signed    trust = 1
	untrusted trust = 2
)

// untrustedTier is the least tier of a tool that has no other guarantee (toolhost §4.4).
const untrustedTier = 2

// parse reads the text of a manifest. dir, an absolute path, is what its relative paths start from.
// why is what is wrong, and is empty if nothing is. Nothing of text is kept.
func parse(text []byte, dir string) (entries []Entry, why string) {
	o := open(text, packNames, "", &why)
	if !packID.MatchString(o.text(packIDMember)) {
		o.bad(packIDMember, "must match "+packGrammar)
	}
	o.text(packVersion)
	trusted := trust(o.oneOf(packTrust, trustTiers...))
	tools := &o.members[packTools]
	if tools.Kind != jsonx.ArrayStart {
		o.bad(packTools, "must be an array")
	}
	seen := make(map[string]bool)
	a := jsonx.OpenArray(tools.Raw)
	for v, ok := a.Next(); ok && why == ""; v, ok = a.Next() {
		e := parseTool(v.Raw, "tools["+strconv.Itoa(len(entries))+"].", dir, trusted, &why)
		if seen[e.AID] {
			o.fail(duplicate(e.AID))
		}
		seen[e.AID] = true
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		o.bad(packTools, "must not be empty")
	}
	if why != "" {
		return nil, why
	}
	return entries, ""
}

func parseTool(raw []byte, where, dir string, trusted trust, why *string) Entry {
	o := open(raw, toolNames, where, why)
	if *why != "" {
		return Entry{}
	}
	d := tool.Descriptor{AID: o.text(toolAID)}
	switch {
	case !aidID.MatchString(d.AID):
		o.bad(toolAID, "must match "+aidGrammar)
	case len(d.AID) > maxAID:
		o.bad(toolAID, "longer than "+strconv.Itoa(maxAID)+" bytes")
	}
	d.Name = o.text(toolName)
	d.Deterministic = o.boolean(toolDeterministic)
	d.Tags = o.texts(toolTags, 1)
	model := open(o.object(toolEstimate), estimateNames, where+"estimate_model.", why)
	model.oneOf(0, "ConservativeBound", "InfinityBound")
	o.object(toolInputs)
	o.object(toolOutputs)
	exec := Exec{Kind: Declared, Builtin: d.AID}
	if o.has(toolExec) {
		exec = parseExec(o.object(toolExec), where+"exec.", dir, trusted, why)
	}
	d.External = exec.Kind.External()
	o.effects(&d)
	d.Tier = max(o.integer(toolTier, 0, tool.MaxTier, 0), tool.TierOf(d.AID, d.SideEffects))
	if trusted == untrusted {
		d.Tier = max(d.Tier, untrustedTier)
	}
	return Entry{Descriptor: d, Exec: exec}
}

// effects reads what an external tool must declare, because it is not known otherwise.
func (o *object) effects(d *tool.Descriptor) {
	d.SideEffects, d.ReplayInputs = slices.Clone(noEffects), []string{}
	switch {
	case o.has(toolEffects):
		d.SideEffects = o.texts(toolEffects, 1)
	case d.External:
		o.bad(toolEffects, "required")
	}
	if o.has(toolReplay) {
		d.ReplayInputs = o.texts(toolReplay, 0)
	}
	if d.External && d.Deterministic && len(d.ReplayInputs) == 0 && !slices.Equal(d.SideEffects, noEffects) {
		o.bad(toolReplay, "required for a deterministic tool with side effects")
	}
}

// maxDepth is how deep a manifest may nest, as a request line (toolhost §2.4).
const maxDepth = 32

// object is one JSON object whose known members were picked out. The first thing that is wrong with
// any of the objects of a manifest is kept in why; after that everything reads as its zero value.
type object struct {
	names   *jsonx.Names
	members []jsonx.Member
	where   string // what stands before a member's name in errors, with its dot
	why     *string
}

// open reads raw, which is called where ("" for the manifest itself).
func open(raw []byte, names *jsonx.Names, where string, why *string) object {
	o := object{names: names, members: make([]jsonx.Member, names.Len()), where: where, why: why}
	r, which := names.Scan(raw, maxDepth, o.members)
	switch r {
	case jsonx.ScanOK:
	case jsonx.ScanInvalid:
		o.fail("invalid JSON: " + jsonx.Check(raw, maxDepth).String())
	case jsonx.ScanDuplicate:
		o.fail("duplicate key: " + where + names.Name(which))
	default:
		o.fail(strings.TrimPrefix(strings.TrimSuffix(where, ".")+": must be an object", ": "))
	}
	return o
}

func (o *object) fail(why string) {
	if *o.why == "" {
		*o.why = why
	}
}

func (o *object) bad(i int, why string) { o.fail(o.where + o.names.Name(i) + ": " + why) }

func (o *object) has(i int) bool { return o.members[i].Kind != jsonx.Absent }

// text returns a string that must be there.
func (o *object) text(i int) string {
	m := &o.members[i]
	if m.Kind != jsonx.String {
		o.bad(i, "must be a string")
		return ""
	}
	return string(jsonx.Unescape(m.Raw))
}

// oneOf returns which of the texts a string is, that must be there unless optional.
func (o *object) oneOf(i int, texts ...string) int {
	if n := slices.Index(texts, o.text(i)); n >= 0 {
		return n
	}
	o.bad(i, "must be one of "+strings.Join(texts, ", "))
	return 0
}

func (o *object) boolean(i int) bool {
	k := o.members[i].Kind
	if k != jsonx.True && k != jsonx.False {
		o.bad(i, "must be a boolean")
	}
	return k == jsonx.True
}

func (o *object) object(i int) []byte {
	if o.members[i].Kind != jsonx.ObjectStart {
		o.bad(i, "must be an object")
		return []byte("{}")
	}
	return o.members[i].Raw
}

// integer returns an integer, fallback if it is absent.
func (o *object) integer(i, least, most, fallback int) int {
	m := &o.members[i]
	if m.Kind == jsonx.Absent {
		return fallback
	}
	n, ok := int64(0), false
	if m.Kind == jsonx.Number {
		n, ok = jsonx.ParseInt(m.Raw)
	}
	if !ok || n < int64(least) || n > int64(most) || n > math.MaxInt {
		o.bad(i, "must be an integer from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return fallback
	}
	return int(n)
}

// texts returns an array of at least that many strings.
func (o *object) texts(i, least int) []string {
	m := &o.members[i]
	list, ok := jsonx.Value{Kind: m.Kind, Raw: m.Raw}.Texts()
	switch {
	case !ok:
		o.bad(i, "must be an array of strings")
	case len(list) < least:
		o.bad(i, "must not be empty")
	}
	return append([]string{}, list...)
}

// only refuses members of raw that are not among the known ones, or not among the allowed ones.
func (o *object) only(raw []byte, allowed func(i int) bool) {
	known := make(map[string]bool, o.names.Len())
	for i := range o.names.Len() {
		known[o.names.Name(i)] = allowed == nil || allowed(i)
	}
	each := jsonx.OpenObject(raw)
	for key, _, ok := each.Next(); ok; key, _, ok = each.Next() {
		if name := string(jsonx.Unescape(key)); !known[name] {
			o.fail(o.where + clip(name) + ": unknown member")
			return
		}
	}
}

// clip shortens what an error shows of a text that may be as long as the manifest.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
