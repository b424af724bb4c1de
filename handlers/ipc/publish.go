package ipc

import (
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/runtime"
)

var emptyObject = []byte("{}")

// busMessage are the three fields that Publish, Send and Query share.
type busMessage struct{ typ, payload, source []byte }

func (m *busMessage) size() int {
	return len(m.typ) + len(m.payload) + len(m.source) + runtime.EventBytes
}

// busMessage reads the fields; typeField is the key of the first one.
func (t *turn) busMessage(typeField string) (m busMessage, ok bool) {
	if m.typ, ok = t.identifier(&t.fields[0], typeField); !ok {
		return m, false
	}
	if typeField == "event_type" && (string(m.typ) == runtime.GapEvent || string(m.typ) == runtime.SubscribedEvent) {
		return m, t.bad(typeField, " is reserved")
	}
	if m.payload, ok = t.jsonText(&t.fields[1], "payload", emptyObject); !ok {
		return m, false
	}
	m.source, ok = t.optionalID(&t.fields[2], "source")
	return m, ok
}

// jsonText is an optional string of JSON text, passed on byte for byte (kernel-ipc D7).
func (t *turn) jsonText(v *mpack.Value, field string, def []byte) ([]byte, bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return def, true
	case mpack.Str:
	default:
		return nil, t.bad(field, " must be a string")
	}
	text := jsonx.TrimBOM(v.Data)
	if p := jsonx.Check(text, wire.MaxJSONDepth); !p.OK() {
		t.msg = append(append(append(t.msg[:0], "Invalid JSON "...), field...), ": "...)
		t.msg = p.Append(t.msg)
		return nil, false
	}
	return text, true
}

// publish is kernel-ipc §4.15.
func publish(t *turn) wire.Code {
	m, ok := t.busMessage("event_type")
	if !ok {
		return wire.InvalidArgument
	}
	var body *bus.Message
	if t.svc.bus.WantsBytes(m.typ) {
		body = t.svc.bus.NewMessage(m.size())
		body.Body = mpack.AppendEvent(body.Body, m.typ, m.payload, t.now.Wall, m.source)
	}
	delivered := t.svc.bus.Publish(m.typ, body)
	t.out = append(t.out, "\x82\xa7success\xc3\xa9delivered"...)
	t.out = mpack.AppendInt(t.out, int64(delivered))
	return wire.OK
}

// send is kernel-ipc §4.16.
func send(t *turn) wire.Code {
	m, ok := t.busMessage("command_type")
	if !ok {
		return wire.InvalidArgument
	}
	if !t.svc.bus.HasHandler(bus.CommandHandler, m.typ) {
		return t.refuseAbout(wire.NotFound, "No handler registered for command type: ", m.typ, "")
	}
	body := t.svc.bus.NewMessage(m.size())
	body.Body = mpack.AppendCommand(body.Body, m.typ, m.payload, m.source, t.now.Wall)
	if code := t.outcome(t.svc.bus.Send(m.typ, body), "command", m.typ); code != wire.OK {
		return code
	}
	t.out = append(t.out, "\x82\xa7success\xc3\xa5error\xa0"...)
	return wire.OK
}

// outcome is the refusal of a message that its handler did not get, OK otherwise.
func (t *turn) outcome(o bus.Outcome, what string, typ []byte) wire.Code {
	switch o {
	case bus.NoHandler:
		t.refuse(wire.NotFound, "No handler registered for ")
		t.msg = append(append(append(t.msg, what...), " type: "...), typ...)
		return wire.NotFound
	case bus.BufferFull:
		t.saturated("Handler buffer is full for ")
		t.msg = append(append(append(t.msg, what...), " type: "...), typ...)
		return wire.ResourceExhausted
	case bus.TooLarge:
		return t.refuse(wire.ResourceExhausted, "Message too large for handler")
	case bus.TooManyQueries:
		return t.queueFull()
	}
	return wire.OK
}
