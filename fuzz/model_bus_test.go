package fuzz

import (
	"regexp"
	"slices"
	"strings"
)

// stream is one of kernel-ipc §5.4, live or being flushed.
type stream struct {
	conn       *conn
	id, kind   string // kind: Subscribe, Command, Query
	types      []string
	patterns   []string // of Subscribe only
	subscriber any      // string or *made; of Subscribe only
	generated  bool
	ending     bool // takes no more messages
	queue      []item
	waiters    []*waiter
}

// item is something a stream has to send: a message, or the mark of lost ones.
type item struct {
	body object
	lost int
}

// offer gives the stream a message, unless there is no room for it in its buffer or in a frame.
func (s *stream) offer(body object) (refused string) {
	set, waiting := &s.conn.model.set, 0
	for _, it := range s.queue {
		if it.body != nil {
			waiting++
		}
	}
	switch {
	case chunkFrame(s.id, body).size() > set.maxFrame:
		refused = "large"
	case waiting >= set.bufferEvents:
		refused = "full"
	default:
		s.queue = append(s.queue, item{body: body})
		return ""
	}
	if s.kind == "Subscribe" {
		s.lose()
	}
	return refused
}

// lose notes a lost event where it is missing (kernel-ipc §4.18).
func (s *stream) lose() {
	if n := len(s.queue); n > 0 && s.queue[n-1].body == nil {
		s.queue[n-1].lost++
		return
	}
	s.queue = append(s.queue, item{lost: 1})
}

// frame is the chunk that shows it.
func (it item) frame(id string) expected {
	if it.body != nil {
		return chunkFrame(id, it.body)
	}
	return chunkFrame(id, object{{"event_type", "commbus.gap"}, {"payload", jsonText{{"dropped", it.lost}}},
		{"timestamp_ms", anyOf{int64(0)}}, {"source", "commbus"}})
}

// end lets the stream be flushed; its types are free at once.
func (s *stream) end() {
	if !s.ending {
		s.detach()
	}
}

// detach takes the stream out of the bus; queries it has not answered are over.
func (s *stream) detach() {
	s.ending = true
	for _, q := range slices.Clone(s.conn.model.pending) {
		if q.handler == s {
			s.conn.model.cancel(q)
		}
	}
}

func (m *model) event(typ string, payload any, source string) object {
	return object{{"event_type", typ}, {"payload", payload}, {"timestamp_ms", m.wall}, {"source", source}}
}

// wants reports whether the stream lists the type, or has a pattern that fits it.
func (s *stream) wants(typ string) bool {
	return slices.Contains(s.types, typ) ||
		slices.ContainsFunc(s.patterns, func(p string) bool { return expression(p).MatchString(typ) })
}

// expression is a pattern as a regular expression.
func expression(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	if rest, ok := strings.CutSuffix(text, ">"); ok {
		text = rest + `(?s:.*)`
	}
	return regexp.MustCompile(`^` + strings.ReplaceAll(text, `\*`, `[^.]*`) + `$`)
}

// validPattern: what is left beside whole tokens that are wildcards has none.
func validPattern(pattern string) bool {
	tokens := strings.Split(pattern, ".")
	if tokens[len(tokens)-1] == ">" {
		tokens[len(tokens)-1] = ""
	}
	return len(tokens) <= 32 && !slices.ContainsFunc(tokens, func(t string) bool { return t != "*" && strings.ContainsAny(t, "*>") })
}

// fanOut gives an event to every subscription that wants its type (kernel-ipc §4.15).
func (m *model) fanOut(typ string, body object) (delivered int) {
	m.published++
	for _, c := range m.conns {
		for _, s := range c.streams {
			if s.kind == "Subscribe" && !s.ending && s.wants(typ) && s.offer(body) == "" {
				delivered++
			}
		}
	}
	return delivered
}

// emit publishes a lifecycle event (kernel-ipc §4.22).
func (m *model) emit(typ string, payload object) {
	m.fanOut(typ, m.event(typ, jsonText(payload), "kernel"))
}

// message reads the fields that Publish, Send and Query share.
func (k *call) message(typeField string) (typ, payload, source string) {
	typ = k.requiredID(typeField)
	if typeField == "event_type" && (typ == "commbus.gap" || typ == "commbus.subscribed") {
		k.invalid("event_type is reserved")
	}
	return typ, k.json("payload", "{}"), k.optionalID("source")
}

// publish is kernel-ipc §4.15.
func publish(k *call) object {
	typ, payload, source := k.message("event_type")
	if k.bad != nil {
		return nil
	}
	return object{{"success", true}, {"delivered", k.model.fanOut(typ, k.model.event(typ, payload, source))}}
}

// handler finds the stream that handles a type.
func (m *model) handler(kind, typ string) *stream {
	for _, c := range m.conns {
		for _, s := range c.streams {
			if s.kind == kind && !s.ending && slices.Contains(s.types, typ) {
				return s
			}
		}
	}
	return nil
}

// send is kernel-ipc §4.16.
func send(k *call) object {
	typ, payload, source := k.message("command_type")
	if k.bad != nil {
		return nil
	}
	h := k.model.handler("Command", typ)
	if h == nil {
		k.refuse("NOT_FOUND", "No handler registered for command type: %s", typ)
		return nil
	}
	body := object{{"command_type", typ}, {"payload", payload}, {"source", source}, {"timestamp_ms", k.model.wall}}
	if k.refusedBy(h, body, "command", typ) {
		return nil
	}
	k.model.sent++
	return object{{"success", true}, {"error", ""}}
}

// refusedBy offers a message to its handler.
func (k *call) refusedBy(h *stream, body object, what, typ string) bool {
	switch h.offer(body) {
	case "large":
		k.refuse("RESOURCE_EXHAUSTED", "Message too large for handler")
	case "full":
		k.refuse("RESOURCE_EXHAUSTED", "Handler buffer is full for %s type: %s", what, typ)
		k.bad.with("retryable", true)
	}
	return k.bad != nil
}

// subscribe is kernel-ipc §4.18.
func subscribe(k *call) object {
	s := &stream{conn: k.conn, id: k.id, kind: "Subscribe"}
	k.interest(s)
	name := k.optionalID("subscriber_id")
	if s.subscriber = name; name == "" {
		s.subscriber, s.generated = &made{form: subscriberForm, size: 40}, true
	}
	ack := k.flag("ack", false)
	k.freshID()
	if k.bad != nil {
		return nil
	}
	var replaced *stream
	for _, o := range k.conn.streams {
		if o.named("", name) {
			replaced = o
		}
	}
	victim := k.room(replaced)
	if ack {
		payload := jsonText{{"subscriber_id", s.subscriber}, {"event_types", anyList(s.types)}}
		if len(s.patterns) > 0 {
			payload = append(payload, member{"event_patterns", anyList(s.patterns)})
		}
		k.join(s, victim, k.model.event("commbus.subscribed", payload, "commbus"))
	} else {
		k.join(s, victim, nil)
	}
	if replaced != nil && k.bad == nil {
		replaced.end()
	}
	return nil
}

// interest reads what a subscription is about: types, patterns, or both.
func (k *call) interest(s *stream) {
	listed, given := k.field("event_types"), k.field("event_patterns")
	patterns, isList := given.([]any)
	if empty(given) || !empty(listed) {
		s.types = k.types("event_types", k.model.set.maxTypes)
	}
	if !empty(given) && !isList {
		k.invalid("event_patterns must be an array")
	}
	s.patterns = k.names("event_patterns", patterns, k.model.set.maxTypes, validPattern)
}

// empty reports whether nothing, or an empty array, is given.
func empty(v any) bool {
	list, isList := v.([]any)
	return v == nil || isList && len(list) == 0
}

func anyList(names []string) []any {
	list := []any{}
	for _, name := range names {
		list = append(list, name)
	}
	return list
}

// join makes s a stream of the connection, unless its first chunk does not fit into a frame; the
// victim goes.
func (k *call) join(s, victim *stream, first object) {
	chunk := chunkFrame(k.id, first)
	if n := chunk.size(); first != nil && n > k.model.set.maxFrame {
		k.refuse("RESOURCE_EXHAUSTED", "Response too large: %d bytes (max %d)", n, k.model.set.maxFrame)
	}
	if k.bad != nil {
		return
	}
	if victim != nil {
		victim.detach()
		k.conn.streams = slices.DeleteFunc(k.conn.streams, func(o *stream) bool { return o == victim })
		gone := refuse("RESOURCE_EXHAUSTED", "Stream evicted: too many streams").with("retryable", true)
		k.out = append(k.out, gone.frame(victim.id))
	}
	k.conn.streams = append(k.conn.streams, s)
	if first != nil {
		k.out = append(k.out, chunk)
	}
}

// named reports whether the live stream is meant by one of the names; "" is no name.
func (s *stream) named(streamID, subscriberID string) bool {
	if s.ending {
		return false
	}
	if streamID != "" {
		return s.id == streamID
	}
	if s.kind != "Subscribe" {
		return false
	}
	name, known := textOf(s.subscriber)
	return known && name == subscriberID
}

// freshID refuses the id of a stream that is there (kernel-ipc §3.6), which it is until its
// STREAM_END.
func (k *call) freshID() {
	if k.bad == nil && slices.ContainsFunc(k.conn.streams, func(s *stream) bool { return s.id == k.id }) {
		k.invalid("Stream id already in use")
	}
}

// room finds the stream that has to go for one more, or refuses (kernel-ipc §4.18). The contract
// does not bound streams that are being flushed; the server lets them and the live ones come to
// twice the limit, and ends those that are dry before it refuses.
func (k *call) room(replaced *stream) (victim *stream) {
	live, most := 0, k.model.set.maxStreams
	if len(k.conn.streams) >= 2*most {
		k.endDry()
	}
	for _, s := range k.conn.streams {
		if s.ending || s == replaced {
			continue
		}
		live++
		if victim == nil && s.kind == "Subscribe" && s.generated {
			victim = s
		}
	}
	if len(k.conn.streams) >= 2*most || live >= most && victim == nil {
		k.bad = (&refusal{code: "RESOURCE_EXHAUSTED", message: anyOf{""}}).with("retryable", true)
	}
	if live < most {
		return nil
	}
	return victim
}

// endDry ends the streams that are being flushed and have nothing left.
func (k *call) endDry() {
	for _, s := range slices.Clone(k.conn.streams) {
		if !s.ending || len(s.queue) > 0 {
			continue
		}
		k.out = append(k.out, expected{streamEnd, object{{"id", s.id}}})
		for _, w := range s.waiters {
			if reply, last := w.release(k.model); last {
				k.out = append(k.out, reply)
			}
		}
		k.conn.streams = slices.DeleteFunc(k.conn.streams, func(other *stream) bool { return other == s })
	}
}

// register is kernel-ipc §4.20.
func register(k *call, kind, what string) object {
	s := &stream{conn: k.conn, id: k.id, kind: kind}
	s.types = k.types(what+"_types", k.model.set.maxTypes)
	var name any = &made{form: handlerForm, size: 40}
	if given := k.optionalID("handler_id"); given != "" {
		name = given
	}
	k.freshID()
	registered := []any{}
	for _, t := range s.types {
		registered = append(registered, t)
		if k.bad == nil && k.model.handler(kind, t) != nil {
			k.refuse("FAILED_PRECONDITION", "%s handler already registered: %s", kind, t)
		}
	}
	if k.bad == nil {
		k.join(s, k.room(nil), object{{"registered", registered}, {"handler_id", name}})
	}
	return nil
}
