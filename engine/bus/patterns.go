package bus

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Defaults of Config.Patterns and Config.MaxEventPatternsPerConnection.
const (
	DefaultPatterns     = 4096
	DefaultPortPatterns = 1024
)

// MaxPatternTokens bounds the tokens of a pattern, and so the steps of an event through a block.
const MaxPatternTokens = 32

// Errors of Resubscribe: beyond Config.Patterns, and beyond Config.MaxEventPatternsPerConnection.
var (
	ErrPatterns     = errors.New("no room for the patterns of the stream")
	ErrPortPatterns = errors.New("no room for the patterns of the connection")
)

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

// interest is what a subscription with patterns asks for. It never changes.
type interest struct {
	stream   *Stream
	port     Port
	types    []string // sorted, without repeats
	patterns []string // sorted, without repeats
}

// lists reports whether typ is one of the listed types. It does not allocate.
func (in *interest) lists(typ []byte) bool {
	for _, listed := range in.types {
		if listed == string(typ) {
			return true
		}
	}
	return false
}

// blockPatterns is how many patterns an event is compared with at once.
const blockPatterns = 256

// lanes has a bit for each pattern of a block.
type lanes [blockPatterns / 64]uint64

func (l *lanes) set(i int) { l[i/64] |= 1 << (i % 64) }

// patternBlock is an index of up to blockPatterns patterns by the place and text of their tokens.
// It never changes. An event takes one step for each of its tokens, MaxPatternTokens at most: no
// choice of patterns costs more.
type patternBlock struct {
	owners  []*interest // by lane; the patterns of an interest follow each other
	texts   []string    // by lane
	tokens  [MaxPatternTokens]map[string]*lanes
	any     [MaxPatternTokens]lanes     // * stands there
	rest    [MaxPatternTokens]lanes     // > stands there
	lengths [MaxPatternTokens + 1]lanes // the pattern has so many tokens, and no >
	all     lanes
}

// add takes up a pattern; it is for a block that no publisher has yet.
func (k *patternBlock) add(in *interest, text string) {
	lane := len(k.owners)
	k.owners, k.texts = append(k.owners, in), append(k.texts, text)
	k.all.set(lane)
	for at, more := 0, true; more; at++ {
		var token string
		token, text, more = strings.Cut(text, ".")
		switch token {
		case anyRest:
			k.rest[at].set(lane)
			return
		case anyToken:
			k.any[at].set(lane)
		default:
			if k.tokens[at] == nil {
				k.tokens[at] = make(map[string]*lanes)
			}
			if k.tokens[at][token] == nil {
				k.tokens[at][token] = new(lanes)
			}
			k.tokens[at][token].set(lane)
		}
		if !more {
			k.lengths[at+1].set(lane)
		}
	}
}

// without returns a copy that lacks the patterns of one interest.
func (k *patternBlock) without(gone *interest) *patternBlock {
	left := new(patternBlock)
	for lane, in := range k.owners {
		if in != gone {
			left.add(in, k.texts[lane])
		}
	}
	return left
}

// match returns the patterns that an event type matches. It does not allocate.
func (k *patternBlock) match(typ []byte) (hit lanes) {
	open := k.all // what matches the tokens so far
	for at, more := 0, true; more; at++ {
		if at == MaxPatternTokens {
			return hit
		}
		var token []byte
		token, typ, more = bytes.Cut(typ, []byte("."))
		same, left := k.tokens[at][string(token)], uint64(0)
		for i := range open {
			hit[i] |= open[i] & k.rest[at][i]
			next := k.any[at][i]
			if same != nil {
				next |= same[i]
			}
			open[i] &= next
			left |= open[i]
			if !more {
				hit[i] |= open[i] & k.lengths[at+1][i]
			}
		}
		if left == 0 {
			return hit
		}
	}
	return hit
}

// patternSet is the patterns of all subscriptions. It never changes: a subscription that comes or
// goes makes a new set, with the blocks of the old one that it does not concern, so that publishers
// read it without a lock. Nil is the empty set.
type patternSet struct {
	blocks []*patternBlock
	count  int
}

func (set *patternSet) len() int {
	if set == nil {
		return 0
	}
	return set.count
}

// with returns the patterns of set and in. Where in needs more than one block, they are its own and
// follow each other; only the last one takes further patterns.
func (set *patternSet) with(in *interest) *patternSet {
	next := &patternSet{count: set.len() + len(in.patterns)}
	if set != nil {
		next.blocks = slices.Clone(set.blocks)
	}
	at := slices.IndexFunc(next.blocks, func(k *patternBlock) bool { return len(k.owners)+len(in.patterns) <= blockPatterns })
	if at >= 0 {
		next.blocks[at] = next.blocks[at].without(nil)
	}
	for i, text := range in.patterns {
		if at < 0 || i > 0 && i%blockPatterns == 0 {
			at, next.blocks = len(next.blocks), append(next.blocks, new(patternBlock))
		}
		next.blocks[at].add(in, text)
	}
	return next
}

// without returns the patterns of set but those of in.
func (set *patternSet) without(in *interest) *patternSet {
	next := &patternSet{count: set.count - len(in.patterns)}
	if next.count == 0 {
		return nil
	}
	for _, k := range set.blocks {
		if slices.Contains(k.owners, in) {
			k = k.without(in)
		}
		if len(k.owners) > 0 {
			next.blocks = append(next.blocks, k)
		}
	}
	return next
}

// match reports whether typ matches a pattern. It does not allocate.
func (set *patternSet) match(typ []byte) bool {
	if set == nil {
		return false
	}
	for _, k := range set.blocks {
		if k.match(typ) != (lanes{}) {
			return true
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

// addInterest makes the patterns of in reach it from now on. Without room for them, next to freed
// of the same port, it does nothing.
func (b *Bus) addInterest(in *interest, freed int) error {
	b.patterning.Lock()
	defer b.patterning.Unlock()
	set, n := b.patterns.Load(), len(in.patterns)
	switch {
	case b.portPatterns[in.port]-freed+n > b.cfg.MaxEventPatternsPerConnection:
		return ErrPortPatterns
	case set.len()-freed+n > b.cfg.MaxEventPatterns:
		return ErrPatterns
	}
	b.portPatterns[in.port] += n
	b.patterns.Store(set.with(in))
	return nil
}

func (b *Bus) removeInterest(in *interest) {
	b.patterning.Lock()
	defer b.patterning.Unlock()
	if b.portPatterns[in.port] -= len(in.patterns); b.portPatterns[in.port] == 0 {
		delete(b.portPatterns, in.port)
	}
	b.patterns.Store(b.patterns.Load().without(in))
}

// Topic is a type that a live stream lists.
type Topic struct {
	Name string
	// Subscribers counts the subscriptions that list it.
	Subscribers int
	// CommandHandler and QueryHandler report that it has a handler of that kind.
	CommandHandler, QueryHandler bool
}

// Topics returns the types that live streams list, by name, for people. More than limit of them are
// cut: which ones is not determined. It takes one lock of the registry at a time.
func (b *Bus) Topics(limit int) (list []Topic, more bool) {
	for i := range b.registry.shards {
		list = b.registry.shards[i].appendTopics(list, limit+1)
	}
	slices.SortFunc(list, func(x, y Topic) int { return cmp.Compare(x.Name, y.Name) })
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

// Patterns returns the patterns of live streams as Topics returns types, with the number of the
// subscriptions that have each.
func (b *Bus) Patterns(limit int) (list []Topic, more bool) {
	counts := make(map[string]int)
	if set := b.patterns.Load(); set != nil {
		for _, k := range set.blocks {
			for _, text := range k.texts {
				counts[text]++
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, Topic{Name: text, Subscribers: counts[text]})
	}
	return list[:min(len(list), limit)], len(list) > limit
}

// appendTopics appends the types of a shard until list has limit elements.
func (sh *shard) appendTopics(list []Topic, limit int) []Topic {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	for name, t := range sh.topics {
		if len(list) >= limit {
			return list
		}
		list = append(list, Topic{name, len(t.streams) - len(t.gone), sh.handlers[0][name] != nil, sh.handlers[1][name] != nil})
	}
	for kind, handlers := range sh.handlers {
		for name := range handlers {
			if sh.topics[name] != nil || kind == 1 && sh.handlers[0][name] != nil {
				continue // it is in the list already
			}
			if len(list) >= limit {
				return list
			}
			list = append(list, Topic{name, 0, sh.handlers[0][name] != nil, sh.handlers[1][name] != nil})
		}
	}
	return list
}
