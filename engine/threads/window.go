package threads

import (
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/threads/summary"
)

// maxWindows is how many windows are in memory at a time: one of events with the longest metadata
// takes 256 MB.
const maxWindows = 4

// Summary is what a thread is about.
type Summary struct {
	summary.Summary
	// Status is that of the thread.
	Status Status
	// Index is what the journal has to be durable up to before it is shown.
	Index journal.Index
}

// Summarize returns the summary of the last messages of a thread, at most n (threads §4.7). It may
// wait for a disk, and for other summaries.
func (e *Engine) Summarize(a *Actor, id []byte, n int) (s Summary, _ Refusal) {
	e.windows <- struct{}{}
	defer func() { <-e.windows }()
	w, ref := e.window(a, id, n)
	if ref.Code != OK {
		return s, ref
	}
	return Summary{summary.Summarize(w.messages, w.latest, w.status.String()), w.status, w.index}, Refusal{}
}

// window is the end of a thread: what a summary looks at.
type window struct {
	messages []summary.Message
	latest   uint64 // number of the last message
	status   Status // of the thread
	index    journal.Index
}

func (e *Engine) window(a *Actor, id []byte, n int) (w window, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return w, Refusal{Code: code}
	}
	w.latest, w.status, w.index = t.visible(max(e.safe(), a.Seen)), t.status, t.index
	first := w.latest - min(w.latest, uint64(n)) + 1
	start := t.latest - uint64(len(t.hot)) + 1 // of what is in memory: it stays while it is referred to
	var hot []ref
	if start <= w.latest {
		hot = slices.Clone(t.hot[max(first, start)-start : w.latest-start+1])
	}
	t.mu.Unlock()
	w.messages = make([]summary.Message, 0, w.latest-first+1)
	var body []byte
	seq := first
	add := func(m *message) bool {
		var text summary.Message
		text, body = m.summarized(seq, body)
		w.messages = append(w.messages, text)
		seq++
		return true
	}
	if last := min(w.latest, start-1); first <= last {
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
