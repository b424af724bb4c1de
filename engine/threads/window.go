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
	page, since := []byte(nil), w.Latest-min(w.Latest, uint64(n))
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
			w.Messages = append(w.Messages, readMessage(v.Raw))
		}
		page, since = out, p.Next
	}
	return w, Refusal{}
}

var messageNames = []string{"seq", "message_id", "sender_agent_id", "kind", "body", "metadata", "in_reply_to"}

// readMessage reads a message as read_messages shows it.
func readMessage(text []byte) (m summary.Message) {
	var v [7]jsonx.Value
	jsonx.Pick(text, messageNames, v[:])
	str := func(i int) []byte {
		if v[i].Kind != jsonx.String {
			return nil
		}
		return jsonx.AppendUnescaped(nil, v[i].Raw[1:len(v[i].Raw)-1])
	}
	seq, _ := jsonx.ParseInt(v[0].Raw)
	m.Seq, m.ID, m.Sender, m.Kind, m.Body, m.InReplyTo = uint64(seq), string(str(1)), string(str(2)), string(str(3)), str(4), string(str(6))
	if v[5].Kind == jsonx.ObjectStart {
		m.Metadata = append([]byte(nil), v[5].Raw...)
	}
	return m
}
