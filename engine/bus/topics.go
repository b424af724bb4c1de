package bus

import (
	"cmp"
	"maps"
	"slices"
)

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
