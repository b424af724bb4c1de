package bus

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// DefaultPatterns is the default of Config.Patterns. Each Publish may have to look at all of them.
const DefaultPatterns = 1024

// MaxPatternTokens bounds the tokens of a pattern, and so the time that a comparison takes.
const MaxPatternTokens = 32

// ErrPatterns is the error of SubscribePatterns beyond Config.Patterns.
var ErrPatterns = errors.New("no room for the patterns of the stream")

var errNames = errors.New("no room for the names of the stream")

// The wildcards of a pattern: each is a whole token, which is what stands between dots.
const (
	anyToken = "*" // exactly one token, also an empty one
	anyRest  = ">" // one or more tokens up to the end
)

// ValidPattern reports whether pattern may be subscribed to: a wildcard is a whole token, the one
// that stands for the rest is the last token, and there are at most MaxPatternTokens. A pattern
// without a wildcard matches itself.
func ValidPattern(pattern string) bool {
	for range MaxPatternTokens {
		token, rest, more := strings.Cut(pattern, ".")
		if len(token) > 1 && strings.ContainsAny(token, anyToken+anyRest) || token == anyRest && more {
			return false
		}
		if !more {
			return true
		}
		pattern = rest
	}
	return false
}

// matches reports whether an event type matches a valid pattern, token by token. It does not
// allocate.
func matches(pattern string, typ []byte) bool {
	for {
		want, patternRest, more := strings.Cut(pattern, ".")
		if want == anyRest {
			return true
		}
		have, typRest, longer := bytes.Cut(typ, []byte("."))
		if want != anyToken && want != string(have) || more != longer {
			return false
		}
		if !more {
			return true
		}
		pattern, typ = patternRest, typRest
	}
}

// interest is what a subscription with patterns asks for. It never changes.
type interest struct {
	stream   *Stream
	types    []string // sorted, without repeats
	patterns []string // sorted, without repeats
}

// pattern is one pattern of a subscription.
type pattern struct {
	in *interest
	at int // its place in in.patterns
}

func (p *pattern) matches(typ []byte) bool { return matches(p.in.patterns[p.at], typ) }

// delivers reports whether the subscription gets the event by this pattern, which matches. It gets
// an event once: by its type if it lists that, else by the first pattern that matches.
func (p *pattern) delivers(typ []byte) bool {
	for _, listed := range p.in.types {
		if listed == string(typ) {
			return false
		}
	}
	for _, earlier := range p.in.patterns[:p.at] {
		if matches(earlier, typ) {
			return false
		}
	}
	return true
}

// patternSet is the patterns of all subscriptions. It never changes: a subscription that comes or
// goes makes a new set, so that publishers read it without a lock. Nil is the empty set.
type patternSet struct {
	interests []*interest
	first     map[string][]pattern // by their first token
	any       []pattern            // whose first token is a wildcard
	count     int
}

func newPatternSet(interests []*interest) *patternSet {
	if len(interests) == 0 {
		return nil
	}
	set := &patternSet{interests: interests, first: make(map[string][]pattern)}
	for _, in := range interests {
		set.count += len(in.patterns)
		for at, text := range in.patterns {
			p := pattern{in, at}
			if token, _, _ := strings.Cut(text, "."); token != anyToken && token != anyRest {
				set.first[token] = append(set.first[token], p)
			} else {
				set.any = append(set.any, p)
			}
		}
	}
	return set
}

func (set *patternSet) len() int {
	if set == nil {
		return 0
	}
	return set.count
}

func (set *patternSet) all() []*interest {
	if set == nil {
		return nil
	}
	return set.interests
}

// candidates returns the patterns that typ may match. It does not allocate.
func (set *patternSet) candidates(typ []byte) [2][]pattern {
	first, _, _ := bytes.Cut(typ, []byte("."))
	return [2][]pattern{set.first[string(first)], set.any}
}

// match reports whether typ matches a pattern. It does not allocate.
func (set *patternSet) match(typ []byte) bool {
	if set == nil {
		return false
	}
	for _, list := range set.candidates(typ) {
		for i := range list {
			if list[i].matches(typ) {
				return true
			}
		}
	}
	return false
}

// matchName is match for a string. It does not allocate for names of up to 64 bytes.
func (set *patternSet) matchName(typ string) bool {
	if set == nil {
		return false
	}
	var buf [64]byte
	return set.match(append(buf[:0], typ...))
}

// addInterest makes the patterns of in reach it from now on. It reports false, and does nothing,
// without room for them.
func (b *Bus) addInterest(in *interest) bool {
	b.patterning.Lock()
	defer b.patterning.Unlock()
	set := b.patterns.Load()
	if set.len()+len(in.patterns) > b.cfg.Patterns {
		return false
	}
	b.patterns.Store(newPatternSet(append(slices.Clone(set.all()), in)))
	return true
}

func (b *Bus) removeInterest(in *interest) {
	b.patterning.Lock()
	defer b.patterning.Unlock()
	left := slices.DeleteFunc(slices.Clone(b.patterns.Load().all()), func(other *interest) bool { return other == in })
	b.patterns.Store(newPatternSet(left))
}
