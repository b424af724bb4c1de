package tool

import (
	"slices"
	"strings"
)

// MaxTier is the highest tier (toolhost §4.4).
const MaxTier = 3

// tierRule is one line of the table of toolhost §4.4.
type tierRule struct {
	part string // what the name contains
	tier int
}

var aidTiers = [...]tierRule{
	{"GENESIS", 3},
	{"SHELL", 2},
	{"NET.HTTP", 2},
	{"FILE.WRITE", 1},
	{"MEMORY.APPEND", 1},
	{"VECDB.UPSERT", 1},
}

var effectTiers = [...]tierRule{
	{"library_load", 3},
	{"exec", 2},
	{"network", 2},
	{"process", 2},
	{"spawn", 2},
	{"write", 1},
	{"append", 1},
	{"delete", 1},
	{"create", 1},
}

// harmless lists the side effects of tier 0.
var harmless = []string{"none", "read", "filesystem_read", "gpu_probe"}

// unknownTier is the tier of a side effect that is in no list: closed rather than open.
const unknownTier = 2

// TierOf returns the tier that a tool's name and side effects give it, 0 safe to 3 dangerous: the highest of all that apply
// (toolhost §4.4, D24). No side effects at all count as "none". A manifest may raise it, never lower it. Names are compared
// with the case they have. It does not allocate.
func TierOf(aid string, sideEffects []string) int {
	tier, _ := highest(aidTiers[:], aid)
	for _, effect := range sideEffects {
		if slices.Contains(harmless, effect) {
			continue
		}
		least, known := highest(effectTiers[:], effect)
		if !known {
			least = unknownTier
		}
		tier = max(tier, least)
	}
	return tier
}

// highest returns the highest tier among the rules that fit name; known reports that there is one.
func highest(rules []tierRule, name string) (tier int, known bool) {
	for _, r := range rules {
		if strings.Contains(name, r.part) {
			tier, known = max(tier, r.tier), true
		}
	}
	return tier, known
}
