package ipc

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"trunkline/codec/frame"
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc/message"
)

// subscribe is kernel-ipc §4.18.
func subscribe(t *turn) wire.Code {
	types, patterns, ok := t.interest()
	if !ok {
		return wire.InvalidArgument
	}
	st := &liveStream{kind: bus.Subscription}
	if !t.name(st, &t.fields[1], "subscriber_id", "ipc-sub-") {
		return wire.InvalidArgument
	}
	ack, ok := t.flag(&t.fields[2], "ack", false)
	if !ok || !t.freshID() {
		return wire.InvalidArgument
	}
	replaced := t.s.subscription(st.subscriberID)
	victim, ok := t.room(replaced)
	if !ok {
		return t.saturated("Too many streams on this connection")
	}
	t.describe(st)
	var first []byte
	if ack {
		first = mpack.AppendEvent(
			nil,
			runtime.SubscribedEvent,
			ackPayload(st.subscriberID, types, patterns),
			t.now.Wall,
			runtime.BusSource,
		)
	}
	if !t.fits(st, first) {
		return wire.ResourceExhausted
	}
	// The new stream is live before the old one stops, so that no event falls between the two.
	var old *bus.Stream
	if replaced != nil {
		old = replaced.bus
	}
	var err error
	switch st.bus, err = t.svc.bus.Resubscribe(old, t.s.port, types, patterns, st.overhead()); err {
	case nil:
	case bus.ErrPatterns:
		return t.saturated("Too many patterns in streams; try again")
	case bus.ErrPortPatterns:
		return t.saturated("Too many patterns on this connection")
	default:
		return t.saturated(tooManyNames)
	}
	t.open(st, victim, first)
	if replaced != nil {
		replaced.end()
		t.s.port.Wake()
	}
	return wire.OK
}

// interest reads what a subscription is about: event_types, which must be there unless the
// extension event_patterns is.
func (t *turn) interest() (types, patterns []string, ok bool) {
	listed, given := &t.fields[0], &t.fields[3]
	if !none(listed) || none(given) {
		if types, ok = t.types(listed, "event_types"); !ok {
			return nil, nil, false
		}
	}
	if none(given) {
		return types, nil, true
	}
	if given.Kind != mpack.Array {
		return nil, nil, t.bad("event_patterns", " must be an array")
	}
	patterns, ok = t.nameList(given, "event_patterns", bus.ValidPattern)
	return types, patterns, ok
}

// none reports whether an array is absent or empty.
func none(v *mpack.Value) bool {
	return v.Kind == mpack.Absent || v.Kind == mpack.Nil || v.Kind == mpack.Array && mpack.Len(v.Data) == 0
}

// tooManyNames refuses a stream whose types and patterns do not fit subscription_name_bytes.
const tooManyNames = "Too many names in streams; try again"

// fits reports whether the stream's first chunk may be sent; else it is not opened (kernel-ipc
// §2.1).
func (t *turn) fits(st *liveStream, first []byte) bool {
	size := st.overhead() + len(first)
	if size <= t.svc.maxFrame {
		return true
	}
	t.msg = appendTooLargeText(t.msg[:0], size, t.svc.maxFrame)
	return false
}

func ackPayload(subscriberID string, types, patterns []string) []byte {
	p := jsonx.AppendString([]byte(`{"subscriber_id":`), subscriberID)
	p = appendNames(append(p, `,"event_types":`...), types)
	if len(patterns) > 0 {
		p = appendNames(append(p, `,"event_patterns":`...), patterns)
	}
	return append(p, '}')
}

func appendNames(p []byte, names []string) []byte {
	p = append(p, '[')
	for i, name := range names {
		if i > 0 {
			p = append(p, ',')
		}
		p = jsonx.AppendString(p, name)
	}
	return append(p, ']')
}

// registerCommandHandler and registerQueryHandler are kernel-ipc §4.20.
func registerCommandHandler(t *turn) wire.Code {
	return t.register(bus.CommandHandler, "command_types", "Command handler already registered: ")
}

func registerQueryHandler(t *turn) wire.Code {
	return t.register(bus.QueryHandler, "query_types", "Query handler already registered: ")
}

func (t *turn) register(kind bus.Kind, field, takenText string) wire.Code {
	types, ok := t.types(&t.fields[0], field)
	if !ok {
		return wire.InvalidArgument
	}
	st := &liveStream{kind: kind}
	if !t.name(st, &t.fields[1], "handler_id", "ipc-hnd-") || !t.freshID() {
		return wire.InvalidArgument
	}
	for _, typ := range types {
		if t.svc.bus.HasHandler(kind, []byte(typ)) {
			return t.refuseAbout(wire.FailedPrecondition, takenText, []byte(typ), "")
		}
	}
	victim, ok := t.room(nil)
	if !ok {
		return t.saturated("Too many streams on this connection")
	}
	t.describe(st)
	first, _ := (&message.Registered{Registered: types, HandlerID: st.subscriberID}).MarshalMsg(nil)
	if !t.fits(st, first) {
		return wire.ResourceExhausted
	}
	st.subscriberID = ""
	handler, taken := t.svc.bus.Handle(kind, t.s.port, types, st.overhead())
	switch {
	case handler == nil && taken == "":
		return t.saturated(tooManyNames)
	case handler == nil:
		return t.refuseAbout(wire.FailedPrecondition, takenText, []byte(taken), "")
	}
	st.bus = handler
	t.open(st, victim, first)
	return wire.OK
}

// types reads the required array of type names; duplicates count once.
func (t *turn) types(v *mpack.Value, field string) (types []string, ok bool) {
	if v.Kind != mpack.Array || mpack.Len(v.Data) == 0 {
		return nil, t.bad(field, " is required (non-empty array)")
	}
	return t.nameList(v, field, nil)
}

// nameList reads an array of names, patterns if valid is there; duplicates count once.
func (t *turn) nameList(v *mpack.Value, field string, valid func(string) bool) (names []string, ok bool) {
	ok = true
	seen := map[string]struct{}{}
	t.scan.Elements(v.Data, func(i int, e mpack.Value) bool {
		switch {
		case e.Kind != mpack.Str || len(e.Data) == 0:
			ok = t.badElement(field, i, " must be a non-empty string")
		case len(e.Data) > wire.MaxIdentifier:
			ok = t.badElement(field, i, " exceeds 1024 bytes")
		case valid != nil && !valid(string(e.Data)):
			ok = t.badElement(field, i, " is no pattern: * and > are whole tokens, > the last one, of at most 32")
		default:
			if _, again := seen[string(e.Data)]; again {
				return true
			}
			name := string(e.Data)
			seen[name] = struct{}{}
			if names = append(names, name); len(names) > t.svc.limits.Load().MaxEventTypes {
				ok = false
				t.refuseAbout(wire.InvalidArgument, "too many ", []byte(field), "")
			}
		}
		return ok
	})
	return names, ok
}

func (t *turn) badElement(field string, i int, rest string) bool {
	t.bad(field, "[")
	t.msg = append(strconv.AppendInt(t.msg, int64(i), 10), ']')
	t.msg = append(t.msg, rest...)
	return false
}

// name reads the stream's name within its connection, or makes one.
func (t *turn) name(st *liveStream, v *mpack.Value, field, prefix string) bool {
	given, ok := t.optionalID(v, field)
	if !ok {
		return false
	}
	if st.generated = given == nil; st.generated {
		u := uuid.New()
		st.subscriberID = prefix + hex.EncodeToString(u[:])
	} else {
		st.subscriberID = string(given)
	}
	return true
}

// freshID refuses a request id that names a stream of the connection already (kernel-ipc §3.6).
func (t *turn) freshID() bool {
	if slices.ContainsFunc(t.s.streams, func(st *liveStream) bool { return st.id == string(t.id) }) {
		return t.bad("Stream id already in use", "")
	}
	return true
}

// subscription returns the connection's live Subscribe stream of a subscriber, nil without one.
func (s *session) subscription(subscriberID string) *liveStream {
	for _, st := range s.streams {
		if st.kind == bus.Subscription && !st.ending && st.subscriberID == subscriberID {
			return st
		}
	}
	return nil
}

// room reports whether one more stream may be opened, and which must be evicted for it if need be:
// the oldest whose subscriber cannot name it (kernel-ipc §4.18). The stream that is about to be
// replaced does not count; streams still being flushed count against twice the limit.
func (t *turn) room(replaced *liveStream) (victim *liveStream, ok bool) {
	limit, live := t.svc.limits.Load().MaxStreamsPerConnection, 0
	if len(t.s.streams) >= 2*limit {
		t.endDry()
	}
	for _, st := range t.s.streams {
		if st.ending || st == replaced {
			continue
		}
		live++
		if victim == nil && st.kind == bus.Subscription && st.generated {
			victim = st
		}
	}
	switch {
	case len(t.s.streams) >= 2*limit:
		return nil, false
	case live < limit:
		return nil, true
	}
	return victim, victim != nil
}

// endDry does what the next Pump would do for ending streams that have nothing left to send.
func (t *turn) endDry() {
	out := t.out[:t.start]
	for _, st := range slices.Clone(t.s.streams) {
		if st.ending && !st.bus.Pending() {
			out = t.s.ended(st, out)
			t.s.drop(st)
		}
	}
	t.out, t.start = out, len(out)
}

// drop takes st off the connection's streams.
func (s *session) drop(st *liveStream) {
	s.streams = slices.DeleteFunc(s.streams, func(other *liveStream) bool { return other == st })
}

// evict ends a stream by an ERROR frame with its id; what it had buffered is dropped.
func (t *turn) evict(victim *liveStream) {
	victim.bus.Discard()
	t.s.drop(victim)
	t.out = appendErrorFrame(t.out[:t.start], []byte(victim.id), wire.ResourceExhausted,
		"Stream evicted: too many streams", mpack.Extras{Retryable: true})
	t.start = len(t.out)
}

// describe gives st the request's id and the prefix of its chunk frames.
func (t *turn) describe(st *liveStream) {
	st.id = string(t.id)
	st.prefix = mpack.AppendChunkPrefix(nil, t.id)
}

// overhead is what a chunk frame counts beside its body: the type byte and the prefix.
func (st *liveStream) overhead() int { return 1 + len(st.prefix) }

// open makes st, which is live on the bus, one of the connection's streams in place of victim,
// which may be nil. It has no RESPONSE; its first chunk, if any, leaves before those of the bus.
func (t *turn) open(st, victim *liveStream, first []byte) {
	t.opened = st
	t.s.streams = append(t.s.streams, st)
	if victim != nil {
		t.evict(victim)
	}
	t.noReply()
	if first != nil {
		t.out = frame.Append(t.out, frame.StreamChunk, st.prefix, first)
	}
}
