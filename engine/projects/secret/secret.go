// Package secret finds credentials in text and removes them (exacta §6.6). A pattern of high
// confidence is refused where it may not enter, which is Find. Before text leaves for a log, an
// event or a bundle, Redact replaces those and what is probably a credential.
//
// All patterns are regular expressions of Go, which take linear time on any text. A short test for
// the bytes that each pattern needs goes first, so that text without them is only scanned for
// those bytes.
package secret

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Redacted takes the place of a credential (exacta D22).
const Redacted = "[REDACTED]"

// rounds is how often Redact looks through what it wrote.
const rounds = 4

// Find reports whether text holds a credential by a pattern of high confidence (exacta §6.6) whose
// value is no placeholder. It takes linear time and keeps nothing.
func Find(text []byte) bool {
	for i := range high {
		for rest := text; high[i].mayMatch(rest); {
			m := high[i].re().FindSubmatchIndex(rest)
			switch {
			case m == nil:
				rest = nil
			case len(m) == 2 || !placeholder(rest[m[2]:m[3]]) || continues(rest[m[2]:]):
				return true
			default:
				rest = rest[m[2]:] // what looked like a value may have a credential
			}
		}
	}
	return false
}

// Leaks reports whether Redact would replace a part of text (exacta §6.6, §4.15).
func Leaks(text []byte) bool { return anyMatch(high, text) || anyMatch(probable, text) }

func anyMatch(patterns []pattern, text []byte) bool {
	for i := range patterns {
		if patterns[i].mayMatch(text) && patterns[i].re().Match(text) {
			return true
		}
	}
	return false
}

// Redact appends text to dst, each match of a pattern of exacta §6.6 replaced by Redacted, and
// returns the result. Matches that overlap are replaced as one. A replacement that completes
// another match is replaced again, and a text that still leaks after a few rounds is replaced as a
// whole: Leaks is false for what is appended. dst and text must not overlap. It takes linear time,
// and it allocates nothing but dst where nothing matches.
func Redact(dst, text []byte) []byte {
	for range rounds {
		found := spans(text)
		if len(found) == 0 {
			return append(dst, text...)
		}
		text = replace(text, found)
	}
	if Leaks(text) {
		return append(dst, Redacted...)
	}
	return append(dst, text...)
}

// span is a part of a text, from its first byte to behind its last one.
type span struct{ from, to int }

// spans returns what all patterns match, in order. Spans that overlap are one.
func spans(text []byte) []span {
	var all []span
	for _, patterns := range [...][]pattern{high, probable} {
		for i := range patterns {
			if !patterns[i].mayMatch(text) {
				continue
			}
			for _, m := range patterns[i].re().FindAllIndex(text, -1) {
				all = append(all, span{m[0], m[1]})
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	joined := all[:0]
	for _, s := range all {
		if n := len(joined); n > 0 && s.from < joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// replace returns text with each span replaced.
func replace(text []byte, found []span) []byte {
	out := make([]byte, 0, len(text)+len(found)*len(Redacted))
	next := 0
	for _, s := range found {
		out = append(out, text[next:s.from]...)
		out = append(out, Redacted...)
		next = s.to
	}
	return append(out, text[next:]...)
}

// pattern is an expression with the bytes that a match needs.
type pattern struct {
	needs []string // each match holds one of them; in lower case if fold is set
	fold  bool     // the letters of needs stand for both cases
	also  []string // each match holds one of these too, if there are any
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
// written. What they need is without k and s, which fold to signs of more bytes too.
var probable = []pattern{
	folded(`(?i)\b(?:set-)?cookie:\s*.+`, "ie:"),
	folded(`(?i)\bauthorization:\s*.+`, "authorization:"),
	folded(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}`, "bearer"),
	folded(`(?i)\b(?:api[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|access[_-]?token|`+
		`refresh[_-]?token|password|passwd|pwd|secret|token)\b["']?\s*[:=]\s*["']?[^\s"',;]{4,}`,
		"ey", "ecret", "en", "word", "wd").and(":", "="),
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

// and returns the pattern, of which each match holds one of also.
func (p pattern) and(also ...string) pattern {
	p.also = also
	return p
}

// mayMatch reports whether text has the bytes that a match needs.
func (p *pattern) mayMatch(text []byte) bool {
	holds := func(n string) bool { return bytes.Contains(text, []byte(n)) }
	if len(p.also) > 0 && !slices.ContainsFunc(p.also, holds) {
		return false
	}
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

// What stands for a credential in source and documentation. Nothing that a server would accept has
// one of the first two forms.
var (
	// codeEnds is the end of a literal, where code adds the value: "Authorization: Basic "+auth.
	codeEnds = lazy("^\\\\?[\"'`](?:$|[),;\\]}:\\\\]|[+.&](?:$|\\$?" + nameWord + "(?:[_.]" + nameWord + "){0,7}\\d{0,2}(?:$|\\+[\"'`]|[^\\w.+/=~\"'`-])))")
	// variable is $TOKEN, ${token}, $(cat, <your-token>, {{ token, %s, [TOKEN], ***, ... and alike:
	// a name has words of one case or with few humps, and no more than two digits at its end.
	variable = lazy("^\\\\?[\"'`]?(?:[$<{%\\[#@(]+(?:$|(?:" + nameWord + "(?:[_.:-]" + nameWord + "){0,7}\\d{0,2}[)}\\]>%]*s?|[)}\\]>%]+)" + closed + ")|(?:[*.xX]{3,}|…)" + closed + ")")
	// plain is a value without any of these signs around it.
	plain = lazy("^\\\\?[\"'`]?([A-Za-z0-9._~+/=-]+)" + ends)
	// joined is the end of a literal and another one, which code joins to it; the line of the other
	// one may begin with the sign of a diff.
	joined = lazy("^\\\\?[\"'`]\\s*(?:[+.&]\\s*){0,2}[\"'`]([A-Za-z0-9._~+/=-]{8,})[\"'`\\\\]")
	words  = lazy(`[A-Z]+(?:[a-z]+)?|[a-z]+`)
)

// Parts of the expressions.
const (
	nameWord = `(?:[A-Z]{1,12}|[A-Za-z][a-z]{0,12}(?:[A-Z][a-z]{1,12}){0,3})`
	ends     = "(?:$|[\"'`,;)}>\\]\\\\])"
	closed   = "(?:$|[\"'`,;\\\\])" // behind closing brackets
)

// placeholderWords are what people write in the place of a credential.
const placeholderWords = " access account admin ant anthropic api apikey app auth authorization base basic bearer client code credential credentials" +
	" demo dummy encoded fake foo bar baz bot from generated github gitlab goes google here id insert invalid jwt key my oauth openai pass" +
	" password pat paste personal placeholder proj put redacted replace sample secret server service session slack some string stripe test the" +
	" this to token tokens accesstoken apitoken authtoken mytoken yourtoken user username value with your "

// maxPlaceholder bounds the text of words that stands for a credential, in bytes. Find looks into
// it once more, so a bound keeps that linear.
const maxPlaceholder = 256

// continues reports whether a text begins with the end of a literal, and a credential in the one
// that code joins to it: "Authorization: Bearer " + "h480djs93hd8".
func continues(text []byte) bool {
	m := joined().FindSubmatch(text)
	return m != nil && !placeholder(m[1])
}

// placeholder reports whether the value of a match only stands for a credential: a variable, words
// such as YOUR_TOKEN or my-api-key, a run of x, a text with "example".
func placeholder(value []byte) bool {
	if codeEnds().Match(value) || variable().Match(value) {
		return true
	}
	m := plain().FindSubmatch(value)
	if m == nil {
		return false
	}
	text := m[1]
	if len(text) > maxPlaceholder {
		return false
	}
	if containsFold(text, "example") {
		return true
	}
	known, found := 0, words().FindAll(text, -1)
	for _, w := range found {
		w := strings.ToLower(string(w))
		if strings.Contains(placeholderWords, " "+w+" ") || len(w) > 2 && strings.Trim(w, "x") == "" {
			known++
		} else if len(w) > 12 {
			return false
		}
	}
	digits := 0
	for _, c := range words().ReplaceAll(text, nil) {
		if '0' <= c && c <= '9' {
			digits++
		} else if c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	if digits > 2 || len(found) == 0 {
		return false
	}
	capitals := bytes.Equal(text, bytes.ToUpper(text))
	return known == len(found) || capitals && digits == 0 && (known > 0 || 2 < len(text) && len(text) < 10)
}
