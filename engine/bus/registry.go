package bus

import (
	"hash/maphash"
	"sync"
)

// shardCount is a power of two, so that a mask picks the shard.
const shardCount = 64

// registry knows which streams list which type. A type that no stream lists any more has no entry.
type registry struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

type shard struct {
	mu       sync.RWMutex
	topics   map[string]*topic
	handlers [2]map[string]*Stream // CommandHandler, QueryHandler
	_        [80]byte              // two cache lines each, so that neighbours do not share one
}

// topic is the list of subscriptions to one type. Publishers walk a snapshot of streams without the
// shard's lock: written elements never change, append writes behind every snapshot, and removal
// builds a new slice.
type topic struct {
	streams []*Stream
	// gone counts streams that have left but are still in streams. They are closed, so a publisher
	// skips them, and they never outnumber the others: removal costs a constant on average, and the
	// memory of a topic follows its live subscriptions.
	gone map[*Stream]struct{}
}

func (r *registry) init() { r.seed = maphash.MakeSeed() }

func (r *registry) shard(typ []byte) *shard {
	return &r.shards[maphash.Bytes(r.seed, typ)&(shardCount-1)]
}

func (r *registry) shardNamed(typ string) *shard {
	return &r.shards[maphash.String(r.seed, typ)&(shardCount-1)]
}

// subscriptions returns a snapshot of the streams that list typ, to be read only. It does not
// allocate.
func (r *registry) subscriptions(typ []byte) []*Stream {
	sh := r.shard(typ)
	sh.mu.RLock()
	var streams []*Stream
	if t := sh.topics[string(typ)]; t != nil {
		streams = t.streams
	}
	sh.mu.RUnlock()
	return streams
}

func (r *registry) hasSubscriber(typ string) bool {
	sh := r.shardNamed(typ)
	sh.mu.RLock()
	t := sh.topics[typ]
	sh.mu.RUnlock()
	return t != nil
}

func (r *registry) addSubscription(typ string, s *Stream) {
	sh := r.shardNamed(typ)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.topics[typ]
	if t == nil {
		t = &topic{}
		if sh.topics == nil {
			sh.topics = make(map[string]*topic)
		}
		sh.topics[typ] = t
	}
	t.streams = append(t.streams, s)
}

// handler returns the stream that handles typ, nil if none. It does not allocate.
func (r *registry) handler(kind Kind, typ []byte) *Stream {
	sh := r.shard(typ)
	sh.mu.RLock()
	s := sh.handlers[kind-CommandHandler][string(typ)]
	sh.mu.RUnlock()
	return s
}

func (r *registry) handlerNamed(kind Kind, typ string) *Stream {
	sh := r.shardNamed(typ)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.handlers[kind-CommandHandler][typ]
}

// addHandler registers s for typ. The caller holds Bus.registering and has seen that typ is free.
func (r *registry) addHandler(typ string, s *Stream) {
	sh := r.shardNamed(typ)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	m := &sh.handlers[s.kind-CommandHandler]
	if *m == nil {
		*m = make(map[string]*Stream)
	}
	(*m)[typ] = s
}

// remove takes the closed stream s out of every type it lists.
func (r *registry) remove(s *Stream) {
	for _, typ := range s.types {
		sh := r.shardNamed(typ)
		sh.mu.Lock()
		if s.kind == Subscription {
			sh.removeSubscription(typ, s)
		} else {
			sh.removeHandler(typ, s)
		}
		sh.mu.Unlock()
	}
}

// An emptied map is let go as a whole, because a Go map keeps the memory of its largest size.

func (sh *shard) removeSubscription(typ string, s *Stream) {
	t := sh.topics[typ]
	if t == nil {
		return
	}
	t.remove(s)
	if len(t.streams) > 0 {
		return
	}
	delete(sh.topics, typ)
	if len(sh.topics) == 0 {
		sh.topics = nil
	}
}

func (sh *shard) removeHandler(typ string, s *Stream) {
	m := &sh.handlers[s.kind-CommandHandler]
	delete(*m, typ)
	if len(*m) == 0 {
		*m = nil
	}
}

func (t *topic) remove(s *Stream) {
	if t.gone == nil {
		t.gone = make(map[*Stream]struct{})
	}
	t.gone[s] = struct{}{}
	live := len(t.streams) - len(t.gone)
	if live > len(t.gone) {
		return
	}
	kept := make([]*Stream, 0, live)
	for _, other := range t.streams {
		if _, left := t.gone[other]; !left {
			kept = append(kept, other)
		}
	}
	t.streams, t.gone = kept, nil
}
