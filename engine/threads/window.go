package threads

import (
	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/threads/summary"
)

// Window is the end of a thread: what a summary looks at.
type Window struct {
	Messages []summary.Message
	// Latest is the number of the last message, Status that of the thread.
	Latest uint64
	Status Status
	// Index is what the journal has to be durable up to before it is shown.
	Index journal.Index
}

// Window returns the last messages of a thread, at most n. It may wait for a disk.
func (e *Engine) Window(a *Actor, id []byte, n int) (w Window, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return w, Refusal{Code: code}
	}
	w.Latest, w.Status, w.Index = t.visible(max(e.safe(), a.Seen)), t.status, t.index
	t.mu.Unlock()
	page, body, since := []byte(nil), []byte(nil), w.Latest-min(w.Latest, uint64(n))
	for since < w.Latest {
		out, p, ref := e.Read(a, id, since, int(w.Latest-since), true, page[:0])
		if ref.Code != OK || p.Next == since {
			return w, ref
		}
		list := jsonx.OpenArray(append(append([]byte{'['}, out...), ']'))
		for {
			v, ok := list.Next()
			if !ok {
				break
			}
			var m summary.Message
			m, body = readMessage(v.Raw, body)
			w.Messages = append(w.Messages, m)
		}
		page, since = out, p.Next
	}
	return w, Refusal{}
}

var messageNames = []string{"seq", "message_id", "sender_agent_id", "kind", "body", "metadata", "in_reply_to"}

// readMessage reads what a summary needs of a message as read_messages shows it. buf is for it to
// use, and comes back.
func readMessage(text, buf []byte) (m summary.Message, _ []byte) {
	var v [7]jsonx.Value
	jsonx.Pick(text, messageNames, v[:])
	str := func(i int) []byte {
		if v[i].Kind != jsonx.String {
			return nil
		}
		return jsonx.AppendUnescaped(nil, v[i].Raw[1:len(v[i].Raw)-1])
	}
	seq, _ := jsonx.ParseInt(v[0].Raw)
	m.Seq, m.ID, m.Sender, m.Kind, m.InReplyTo = uint64(seq), string(str(1)), string(str(2)), string(str(3)), string(str(6))
	if v[4].Kind == jsonx.String {
		buf = jsonx.AppendUnescaped(buf[:0], v[4].Raw[1:len(v[4].Raw)-1])
		m.Body = summary.Clip(buf)
	}
	if v[5].Kind == jsonx.ObjectStart && m.Kind != Chat.String() {
		m.Metadata = append([]byte(nil), v[5].Raw...)
	}
	return m, buf
}
