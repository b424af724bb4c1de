package kernel

import "strconv"

// EventKind is a lifecycle event (kernel-ipc §4.22).
type EventKind uint8

// The lifecycle events.
const (
	ProcessCreated EventKind = iota
	ProcessStateChanged
	ProcessTerminated
	ResourceExhausted
)

// numEventKinds is the number of lifecycle events.
const numEventKinds = 4

var eventNames = [numEventKinds]string{"process.created", "process.state_changed", "process.terminated", "resource.exhausted"}

// String returns the event_type on the wire, "unknown" beyond the table. It does not allocate.
func (e EventKind) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return "unknown"
}

// Events takes the lifecycle events. Both methods are called with the scheduling lock held and no
// shard locked, so that the events of one process come in the order of its changes; they must not
// block and must not call the kernel.
type Events interface {
	// Wanted reports whether there is a subscriber: the payload is built only then.
	Wanted(kind EventKind) bool
	// Emit delivers an event that is wanted. payload is JSON text, lent for the call.
	Emit(kind EventKind, payload []byte, now Instant)
}

// maxPayloadScratch bounds what the kernel keeps for building payloads: a single huge reason must
// not stay.
const maxPayloadScratch = 64 << 10

// hasSubscriber counts an event and reports whether to build it. Caller holds the scheduling lock;
// so for the emitters.
func (k *Kernel) hasSubscriber(kind EventKind) bool {
	if k.cfg.Events == nil {
		return false
	}
	wanted := k.cfg.Events.Wanted(kind)
	if !wanted {
		k.unheard++
	}
	return wanted
}

// emit delivers payload, which was built in the scratch buffer, and takes the buffer back.
func (k *Kernel) emit(kind EventKind, payload []byte, now Instant) {
	k.payload = nil
	k.cfg.Events.Emit(kind, payload, now)
	if cap(payload) <= maxPayloadScratch {
		k.payload = payload[:0]
	}
}

// begin starts a payload with the pid.
func (k *Kernel) begin(at *place) []byte {
	return appendMember(k.payload[:0], `{"pid":`, at.sh.pid(at.r))
}

func (k *Kernel) emitCreated(now Instant, at *place) {
	b := k.begin(at)
	ids := at.sh.texts.bytes(at.r.text, at.r.textLen())[at.r.lens[0]:]
	b = appendMember(b, `,"request_id":`, ids[:at.r.lens[1]])
	b = appendMember(b, `,"user_id":`, at.sh.userID(at.r))
	b = appendMember(b, `,"session_id":`, at.sh.sessionID(at.r))
	k.emit(ProcessCreated, append(b, '}'), now)
}

// emitStateChanged emits the transition from old to the row's present state, if it has a
// subscriber.
func (k *Kernel) emitStateChanged(now Instant, at *place, old State, reason []byte) {
	if !k.hasSubscriber(ProcessStateChanged) {
		return
	}
	b := append(k.begin(at), `,"old_state":"`...)
	b = append(b, old.String()...)
	b = append(b, `","new_state":"`...)
	b = append(b, at.r.state.String()...)
	b = appendMember(b, `","reason":`, reason)
	b = appendMember(b, `,"session_id":`, at.sh.sessionID(at.r))
	k.emit(ProcessStateChanged, append(b, '}'), now)
}

// emitTerminated emits the end of a process, if it has a subscriber.
func (k *Kernel) emitTerminated(now Instant, at *place, reason []byte) {
	if !k.hasSubscriber(ProcessTerminated) {
		return
	}
	b := appendMember(k.begin(at), `,"session_id":`, at.sh.sessionID(at.r))
	b = appendMember(b, `,"reason":`, reason)
	k.emit(ProcessTerminated, append(b, '}'), now)
}

func (k *Kernel) emitExhausted(now Instant, at *place, c *QuotaCheck) {
	b := appendMember(k.begin(at), `,"session_id":`, at.sh.sessionID(at.r))
	b = appendEscaped(append(b, `,"reason":"Process `...), at.sh.pid(at.r))
	b = c.appendViolation(b)
	b = append(b, `","usage":`...)
	sep := byte('{')
	for f := range TokensOut + 1 {
		b = append(append(append(b, sep, '"'), f.String()...), '"', ':')
		b = strconv.AppendInt(b, c.Usage[f], 10)
		sep = ','
	}
	b = append(b, `},"resource":"`...)
	b = append(b, c.counter.String()...)
	b = append(b, `","quota":{"`...)
	b = append(b, c.Field.String()...)
	b = append(b, `":`...)
	b = strconv.AppendInt(b, int64(c.Limit), 10)
	k.emit(ResourceExhausted, append(b, "}}"...), now)
}

// appendMember appends key, which includes the punctuation, and text as a JSON string.
func appendMember(dst []byte, key string, text []byte) []byte {
	dst = append(dst, key...)
	dst = append(dst, '"')
	dst = appendEscaped(dst, text)
	return append(dst, '"')
}

// appendEscaped appends valid UTF-8 text as the inside of a JSON string (RFC 8259): quote,
// backslash and control characters are escaped, everything else stays as it is.
func appendEscaped(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i, c := range text {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[start:]...)
}
