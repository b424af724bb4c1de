package threads

import (
	"slices"

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
	first := w.Latest - min(w.Latest, uint64(n)) + 1
	start := t.latest - uint64(len(t.hot)) + 1 // of what is in memory: it stays while it is referred to
	var hot []ref
	if start <= w.Latest {
		hot = slices.Clone(t.hot[max(first, start)-start : w.Latest-start+1])
	}
	t.mu.Unlock()
	w.Messages = make([]summary.Message, 0, w.Latest-first+1)
	var body []byte
	seq := first
	add := func(m *message) bool {
		var text summary.Message
		text, body = m.summarized(seq, body)
		w.Messages = append(w.Messages, text)
		seq++
		return true
	}
	if last := min(w.Latest, start-1); first <= last {
		if err := e.eachRow(t, first, last, add); err != nil {
			return w, Refusal{Code: Failed, Err: err}
		}
	}
	for i := range hot {
		m, err := parseRow(hot[i].row())
		if err != nil {
			return w, Refusal{Code: Failed, Err: err}
		}
		add(&m)
	}
	return w, Refusal{}
}

// summarized returns what a summary reads of message seq. buf is for it to use.
func (m *message) summarized(seq uint64, buf []byte) (s summary.Message, _ []byte) {
	buf = jsonx.AppendUnescaped(buf[:0], m.body)
	s = summary.Message{Seq: seq, ID: string(appendID(nil, messagePrefix, &m.id)), Sender: string(m.sender), Kind: m.kind.String(), Body: summary.Clip(buf)}
	if m.kind != Chat {
		s.Metadata = slices.Clone(m.metadata)
	}
	if m.replies {
		s.InReplyTo = string(appendID(nil, messagePrefix, &m.reply))
	}
	return s, buf
}
