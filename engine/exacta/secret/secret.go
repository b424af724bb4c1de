package secret

import "slices"

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
