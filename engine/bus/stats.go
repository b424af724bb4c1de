package bus

import "sync/atomic"

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
