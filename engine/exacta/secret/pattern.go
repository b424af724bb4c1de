package secret

import (
	"bytes"
	"regexp"
	"sync"
)

// pattern is an expression with the bytes that a match needs.
type pattern struct {
	needs []string // each match holds one of them; in lower case if fold is set
	fold  bool     // the letters of needs stand for both cases
	re    func() *regexp.Regexp
}

// high are the patterns of high confidence, in the order of exacta §6.6. The group of one is the
// value that may be a placeholder. They are not written.
var high = []pattern{
	exact(`-----BEGIN [A-Z ]*PRIVATE KEY-----`, "PRIVATE KEY-----"),
	exact(`\bsk-([A-Za-z0-9_-]{20,})`, "sk-"),
	exact(`\bgh[pousr]_([A-Za-z0-9]{20,})`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	exact(`\bgithub_pat_([A-Za-z0-9_]{20,})`, "github_pat_"),
	exact(`\bxox[abprs]-([A-Za-z0-9-]{10,})`, "xox"),
	exact(`\bAKIA([0-9A-Z]{16})\b`, "AKIA"),
	exact(`\beyJ([\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})`, "eyJ"),
	folded(`(?i)\bauthorization:\s*(?:bearer|basic)\s+(\S+)`, "authorization:"),
}

// probable are the patterns that are only redacted, in the order of exacta §6.6. They are not
// written.
var probable = []pattern{
	exact(`(?i)\b(?:set-)?cookie:\s*.+`, ":"), // k folds to a sign of two more bytes
	folded(`(?i)\bauthorization:\s*.+`, "authorization:"),
	folded(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}`, "bearer"),
	exact(`(?i)\b(?:api[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|access[_-]?token|`+
		`refresh[_-]?token|password|passwd|pwd|secret|token)\b["']?\s*[:=]\s*["']?[^\s"',;]{4,}`, ":", "="),
	exact(`://[^/\s:@]+:[^/\s@]+@`, "://"),
}

// lazy compiles an expression when it is used first: most runs of the program never scan.
func lazy(re string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(re) })
}

func exact(re string, needs ...string) pattern {
	return pattern{needs: needs, re: lazy(re)}
}

func folded(re string, needs ...string) pattern {
	return pattern{needs: needs, fold: true, re: lazy(re)}
}

// mayMatch reports whether text has the bytes that a match needs.
func (p *pattern) mayMatch(text []byte) bool {
	for _, n := range p.needs {
		if p.fold && containsFold(text, n) || !p.fold && bytes.Contains(text, []byte(n)) {
			return true
		}
	}
	return false
}

// containsFold reports whether text holds lower, whose letters stand for both cases.
func containsFold(text []byte, lower string) bool {
	for i := 0; i+len(lower) <= len(text); i++ {
		if text[i]|0x20 == lower[0] && bytes.EqualFold(text[i:i+len(lower)], []byte(lower)) {
			return true
		}
	}
	return false
}
