package bus

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Defaults of Config (kernel-ipc §6).
const (
	DefaultStreamEvents  = 16384     // large enough for ordinary bursts, which must arrive whole (kernel-ipc D37)
	DefaultStreamBytes   = 16 << 20  // bytes of bodies in one stream
	DefaultTotalBytes    = 256 << 20 // bytes of messages in all streams together
	DefaultNameBytes     = 64 << 20  // names that all streams list
	defaultMaxBody       = 5 << 20   // the default max_frame_bytes
	DefaultQueryCapacity = 1 + 2048  // 1 + the default kernel_queue_capacity
)

// Config holds the bounds of a Bus. A field that is zero or negative takes its default.
type Config struct {
	// StreamBufferEvents bounds the messages waiting in one stream (stream_buffer_events).
	StreamBufferEvents int
	// StreamBufferBytes bounds the body bytes waiting in one stream (stream_buffer_bytes).
	StreamBufferBytes int64
	// StreamBufferTotalBytes bounds the messages held by all streams, a shared one counted once
	// (stream_buffer_total_bytes). No stream takes a message that would exceed it. The last
	// sixteenth is for streams without a backlog.
	StreamBufferTotalBytes int64
	// SubscriptionNameBytes bounds the types and patterns that all streams list
	// (subscription_name_bytes): their bytes and nameCost.
	SubscriptionNameBytes int64
	// MaxEventPatterns bounds the patterns of all streams together (max_event_patterns).
	MaxEventPatterns int
	// MaxEventPatternsPerConnection bounds those of one Port (max_event_patterns_per_connection).
	MaxEventPatternsPerConnection int
	// MaxBody bounds len(body) + the stream's overhead, in bytes. It follows from max_frame_bytes.
	MaxBody int
	// QueryCapacity bounds all pending queries: 1 + kernel_queue_capacity, already summed
	// (kernel-ipc §2.6).
	QueryCapacity int
	// OwnsQuery reports whether a new query may have an identifier: the replies to the others go to
	// other partitions of a cluster. nil: any.
	OwnsQuery func(id string) bool
	// GapBody appends the body of a gap marker for dropped events to dst. Pop calls it without a
	// lock, from several goroutines at once. A nil GapBody makes empty bodies.
	GapBody func(dst []byte, dropped uint64) []byte
	// EventBody appends the body of an event to dst and returns the result: of Emit, which a nil
	// EventBody forbids.
	EventBody func(dst []byte, eventType, source string, payload []byte) []byte
}

func (c Config) withDefaults() Config {
	c.StreamBufferEvents = cmp.Or(max(c.StreamBufferEvents, 0), DefaultStreamEvents)
	c.StreamBufferBytes = cmp.Or(max(c.StreamBufferBytes, 0), DefaultStreamBytes)
	c.StreamBufferTotalBytes = cmp.Or(max(c.StreamBufferTotalBytes, 0), DefaultTotalBytes)
	c.SubscriptionNameBytes = cmp.Or(max(c.SubscriptionNameBytes, 0), DefaultNameBytes)
	c.MaxEventPatterns = cmp.Or(max(c.MaxEventPatterns, 0), DefaultPatterns)
	c.MaxEventPatternsPerConnection = cmp.Or(max(c.MaxEventPatternsPerConnection, 0), DefaultPortPatterns)
	c.MaxBody = cmp.Or(max(c.MaxBody, 0), defaultMaxBody)
	c.QueryCapacity = cmp.Or(max(c.QueryCapacity, 0), DefaultQueryCapacity)
	if c.GapBody == nil {
		c.GapBody = func(dst []byte, _ uint64) []byte { return dst }
	}
	return c
}

// Port is the connection behind a stream. Wake means that one of its streams has something to pop;
// any goroutine may call it, also shortly after the stream was detached. It must be cheap and never
// block. It is called with no bus lock held. Ports are compared with ==, so a Port is a pointer.
type Port interface{ Wake() }

// Kind is what a stream carries.
type Kind uint8

// The kinds of streams (kernel-ipc §4.18, §4.20).
const (
	Subscription Kind = iota
	CommandHandler
	QueryHandler
)

// Bus is the message bus of one engine. All methods are safe for concurrent use.
type Bus struct {
	cfg      Config
	registry registry
	queries  queryTable
	counters counters
	messages [len(bodySizes)]sync.Pool // *Message, by the size of their buffers
	slots    slotPools

	// registering makes "check every type, then take every type" of Handle one step.
	registering sync.Mutex

	patterns     atomic.Pointer[patternSet]
	patterning   sync.Mutex // makes changes of patterns one after the other
	portPatterns map[Port]int
}

// New returns an empty bus. It starts no goroutine; the first query starts its only timer.
func New(cfg Config) *Bus {
	b := &Bus{cfg: cfg.withDefaults(), portPatterns: make(map[Port]int)}
	b.registry.init()
	b.queries.init(b.cfg.QueryCapacity, b.cfg.OwnsQuery)
	return b
}

// Close stops the timer and cancels the pending queries; later queries find no handler. Streams
// stay usable, so that what is buffered can still be flushed.
func (b *Bus) Close() {
	cancelAll(b.queries.shut())
}

// Subscribe opens a stream of the events of exactly these types for p (kernel-ipc §4.18). Publishes
// that start after it has returned reach the stream. overhead is the number of bytes that p's frame
// adds around a body. types is not kept, and may repeat. It returns nil without room for the names.
func (b *Bus) Subscribe(p Port, types []string, overhead int) *Stream {
	s, _ := b.subscribePatterns(p, types, nil, overhead)
	return s
}

// subscribePatterns is Subscribe for types, and for all types that match one of patterns, which are
// valid (ValidPattern). An event reaches the stream once, however many of them match. The stream is
// nil without room: with ErrPatterns or ErrPortPatterns for the patterns, with another error for
// the names.
func (b *Bus) subscribePatterns(p Port, types, patterns []string, overhead int) (*Stream, error) {
	return b.Resubscribe(nil, p, types, patterns, overhead)
}

// Resubscribe is subscribePatterns for a stream that takes the place of old, which the caller
// detaches afterwards and no other goroutine does: what old counts of the bounds is free already. A
// nil old counts nothing.
func (b *Bus) Resubscribe(old *Stream, p Port, types, patterns []string, overhead int) (*Stream, error) {
	var named int64
	var patterned int
	if old != nil {
		named = old.named
		if old.interest != nil {
			patterned = len(old.interest.patterns)
		}
	}
	s := b.newStream(Subscription, p, types, patterns, overhead, named)
	if s == nil {
		return nil, errNames
	}
	if s.interest != nil {
		if err := b.addInterest(s.interest, patterned); err != nil {
			b.counters.named.Add(-s.named)
			return nil, err
		}
	}
	for _, t := range s.types {
		b.registry.addSubscription(t, s)
	}
	s.open()
	return s, nil
}

// Handle registers p as the only handler of every one of types (kernel-ipc §4.20), all or nothing.
// On conflict s is nil and taken is the first type that has a handler of this kind already; it is
// empty without room for the names. overhead is as for Subscribe. With kind Subscription it is
// Subscribe.
func (b *Bus) Handle(kind Kind, p Port, types []string, overhead int) (s *Stream, taken string) {
	if kind == Subscription {
		return b.Subscribe(p, types, overhead), ""
	}
	b.registering.Lock()
	defer b.registering.Unlock()
	for _, t := range types {
		if b.registry.handlerNamed(kind, t) != nil {
			return nil, t
		}
	}
	if s = b.newStream(kind, p, types, nil, overhead, 0); s == nil {
		return nil, ""
	}
	for _, t := range s.types {
		b.registry.addHandler(t, s)
	}
	s.open()
	return s, ""
}

// nameCost is the memory of a listed type beside its bytes: its entries in stream and registry.
const nameCost = 128

// newStream returns nil if there is no room for the names, beside freed of those that are counted.
func (b *Bus) newStream(kind Kind, p Port, types, patterns []string, overhead int, freed int64) *Stream {
	s := &Stream{bus: b, kind: kind, port: p, types: ownNames(types), overhead: overhead}
	if len(patterns) > 0 {
		s.interest = &interest{stream: s, port: p, types: s.types, patterns: ownNames(patterns)}
		s.named = costOf(s.interest.patterns)
	}
	s.named += costOf(s.types)
	if b.counters.named.Add(s.named)-freed > b.cfg.SubscriptionNameBytes {
		b.counters.named.Add(-s.named)
		return nil
	}
	return s
}

// ownNames returns a sorted copy of names without repeats. The registry outlives the request, whose
// strings may be views of a reused buffer.
func ownNames(names []string) []string {
	own := make([]string, len(names))
	for i, name := range names {
		own[i] = strings.Clone(name)
	}
	slices.Sort(own)
	return slices.Compact(own)
}

func costOf(names []string) (n int64) {
	for _, name := range names {
		n += int64(len(name) + nameCost)
	}
	return n
}

// Wants reports whether a live subscription lists eventType or has a pattern that matches it. It
// does not allocate for types of up to 64 bytes.
func (b *Bus) Wants(eventType string) bool {
	return b.counters.subscribers.Load() != 0 &&
		(b.registry.hasSubscriber(eventType) || b.patterns.Load().matchName(eventType))
}

// WantsBytes is Wants for a type that is a view over a buffer. It does not allocate.
func (b *Bus) WantsBytes(eventType []byte) bool {
	return b.counters.subscribers.Load() != 0 &&
		(len(b.registry.subscriptions(eventType)) != 0 || b.patterns.Load().match(eventType))
}

// HasHandler reports whether a stream of this kind is registered for typ. It does not allocate.
func (b *Bus) HasHandler(kind Kind, typ []byte) bool {
	if kind == Subscription {
		return b.WantsBytes(typ)
	}
	return b.registry.handler(kind, typ) != nil
}

// counters are the bus's running numbers. All loops write them, so each group has its own cache
// lines.
type counters struct {
	_           [64]byte
	events      atomic.Int64
	commands    atomic.Int64
	executed    atomic.Int64
	dropped     atomic.Int64
	_           [64]byte
	buffered    atomic.Int64
	_           [64]byte
	named       atomic.Int64
	_           [64]byte
	subscribers atomic.Int64 // read by every Wants, written by streams that open or close
	_           [64]byte
}

// Stats are the bus's numbers (kernel-ipc §4.14): three counters since start, and the present
// state.
type Stats struct {
	EventsPublished   int64 // Publish calls, with or without a subscriber
	CommandsSent      int64 // commands a handler's queue took
	QueriesExecuted   int64 // queries answered by a handler, successfully or not
	ActiveSubscribers int64 // live Subscribe streams
	PendingQueries    int64
	DroppedEvents     int64 // events refused by a subscription since start, counted once per subscription
	NameBytes         int64 // memory of the types and patterns that streams list
	Patterns          int64 // patterns of live streams
	BufferedBytes     int64 // memory of the messages held, a shared one counted once; from publishing until the last Release
}

// Stats returns the current numbers, read one after the other, not at one instant.
func (b *Bus) Stats() Stats {
	return Stats{
		EventsPublished:   b.counters.events.Load(),
		CommandsSent:      b.counters.commands.Load(),
		QueriesExecuted:   b.counters.executed.Load(),
		ActiveSubscribers: b.counters.subscribers.Load(),
		PendingQueries:    int64(b.queries.pending()),
		DroppedEvents:     b.counters.dropped.Load(),
		NameBytes:         b.counters.named.Load(),
		Patterns:          int64(b.patterns.Load().len()),
		BufferedBytes:     b.counters.buffered.Load(),
	}
}
