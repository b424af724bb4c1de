package threads

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/method"
)

func (c *call) list(dst []byte) []byte {
	if c.caller.NoWait {
		c.out.Waits = true // a page may examine thousands of threads
		return dst
	}
	f := threadstore.Filter{Status: c.in.StatusFilter(), Type: c.in.TypeFilter(), Participant: string(c.in.Target()),
		Unread: c.in.Unread(), Created: c.in.ByCreation(), Limit: int(c.in.Limit())}
	if text := c.in.Cursor(); text != nil {
		var ok bool
		if f.After, ok = parseCursor(text, f.Created); !ok {
			c.out.Fault = &method.Fault{Condition: method.Invalid, Message: "cursor is no next_cursor of this order"}
			return dst
		}
	}
	list, next, index := c.s.engine.Threads(&c.actor, &f)
	c.out.Index = index
	dst = append(dst, `{"threads":[`...)
	for i := range list {
		dst = appendThread(jsonx.AppendComma(dst), &list[i])
	}
	dst = append(dst, ']')
	if next.Number > 0 {
		dst = append(appendCursor(append(dst, `,"next_cursor":"`...), next, f.Created), '"')
	}
	return append(dst, '}')
}

// appendThread appends a thread as get_thread and list_threads show it.
func appendThread(dst []byte, s *threadstore.Summarized) []byte {
	b := jsonx.Build(dst).Text("thread_id", s.ID).Text("workspace_id", s.Workspace).Text("title", s.Title)
	b = b.Text("type", s.Type.String()).Text("status", s.Status.String()).Texts("participants", s.Participants)
	b = timed(timed(b, "created_at", s.Created), "updated_at", s.Updated).Int("latest_seq", int64(s.Latest))
	if s.Reader {
		b = b.Int("last_read_seq", int64(s.Read)).Int("unread", int64(s.Unread))
	}
	return b.End()
}

// A cursor is the order of the list, the time and the number of a thread, in base64.
const cursorBytes = 1 + 8 + 8

func appendCursor(dst []byte, c threadstore.Cursor, created bool) []byte {
	var raw [cursorBytes]byte
	if created {
		raw[0] = 1
	}
	binary.BigEndian.PutUint64(raw[1:], uint64(c.At))
	binary.BigEndian.PutUint64(raw[9:], c.Number)
	return base64.RawURLEncoding.AppendEncode(dst, raw[:])
}

// parseCursor reads what appendCursor wrote for the same order.
func parseCursor(text []byte, created bool) (c threadstore.Cursor, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(cursorBytes) {
		return c, false // the decoder passes over line ends
	}
	raw, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(raw) != cursorBytes || raw[0] > 1 || (raw[0] == 1) != created {
		return c, false
	}
	c = threadstore.Cursor{At: int64(binary.BigEndian.Uint64(raw[1:])), Number: binary.BigEndian.Uint64(raw[9:])}
	return c, c.Number > 0 && c.At >= 0 && (!created || c.At == 0)
}

func (c *call) members(dst []byte) []byte {
	c.audited()
	m := threadstore.Membership{Add: c.in.Participants(), Remove: c.in.Removed(), Reason: string(c.in.Reason())}
	if len(m.Add)+len(m.Remove) == 0 {
		c.out.Fault = &method.Fault{Condition: method.Invalid, Message: "neither add nor remove has a participant"}
		return dst
	}
	for _, agent := range m.Add {
		if slices.ContainsFunc(m.Remove, func(other []byte) bool { return bytes.Equal(other, agent) }) {
			c.out.Fault = &method.Fault{Condition: method.Invalid, Message: "add and remove have an agent in common"}
			return dst
		}
	}
	v, r, ref := c.s.engine.SetParticipants(&c.actor, c.in.Thread(), &m, c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index = r.Index
	return timed(jsonx.Build(dst).Text("thread_id", v.ID).Texts("participants", v.Participants), "updated_at", v.Updated).End()
}
