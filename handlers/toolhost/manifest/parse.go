package manifest

import (
	"regexp"
	"slices"
	"strconv"

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

// The members by their place in the lists above.
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
	model := open(o.object(toolEstimate), estimateNames, where+"estimate_model.", why) // checked, not used
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
