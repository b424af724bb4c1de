package toolhost

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// Entry is one tool as a server is given it.
type Entry struct {
	tool.Descriptor
	tool.Tool
	// Timeout bounds a call; 0: the server's.
	Timeout time.Duration
	// Breaker keeps calls from a tool that fails again and again. nil: a built-in has none.
	Breaker *tool.Breaker

	index int // in the registry's list: what a server has for each tool is found without a search
}

// Registry is the set of tools that can be run. It does not change once it is made, and any goroutine may read it.
type Registry struct {
	byAID  map[string]*Entry
	sorted []*Entry // by AID
}

// NewRegistry makes a registry. An AID that is there twice is an error with the text of toolhost
// §4.10. The tier of an entry is raised to what its AID and side effects ask for (§4.4).
func NewRegistry(entries []Entry) (*Registry, error) {
	r := &Registry{byAID: make(map[string]*Entry, len(entries))}
	for i := range entries {
		e := entries[i]
		if r.byAID[e.AID] != nil {
			return nil, fmt.Errorf("duplicate aid in registry: %s", e.AID)
		}
		e.Tier = max(e.Tier, tool.TierOf(e.AID, e.SideEffects))
		r.byAID[e.AID] = &e
		r.sorted = append(r.sorted, &e)
	}
	slices.SortFunc(r.sorted, func(a, b *Entry) int { return strings.Compare(a.AID, b.AID) })
	for i, e := range r.sorted {
		e.index = i
	}
	return r, nil
}

// find returns the tool of that AID, nil if there is none. It does not allocate.
func (r *Registry) find(aid []byte) *Entry { return r.byAID[string(aid)] }

// len returns the number of tools.
func (r *Registry) len() int { return len(r.sorted) }

// Descriptors returns the descriptors of the tools, sorted by AID.
func (r *Registry) Descriptors() []tool.Descriptor {
	list := make([]tool.Descriptor, len(r.sorted))
	for i, e := range r.sorted {
		list[i] = e.Descriptor
	}
	return list
}

// Unusable is a tool that a manifest declares and that cannot be run now.
type Unusable struct{ AID, Why string }

// appendList appends the members of the list reply, without its closing brace (toolhost §4.1). Tools in without are left out.
func (r *Registry) appendList(dst []byte, tiers bool, without []Unusable) []byte {
	dst = append(jsonx.Build(dst).Bool("ok", true).Name("tools"), '[')
	for _, e := range r.sorted {
		if slices.ContainsFunc(without, func(u Unusable) bool { return u.AID == e.AID }) {
			continue
		}
		b := jsonx.Build(jsonx.AppendComma(dst)).Text("aid", e.AID).Text("name", e.Name).
			Bool("deterministic", e.Deterministic).Texts("tags", e.Tags).
			Texts("side_effects", e.SideEffects).Texts("replay_inputs", e.ReplayInputs)
		if tiers {
			b = b.Int("tier", int64(e.Tier))
		}
		dst = b.End()
	}
	return append(dst, ']')
}
