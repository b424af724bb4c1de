package threadstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"trunkline/codec/jsonx"
)

// exportBytes is about how many bytes of messages are read for an export before they are written.
const exportBytes = 1 << 20

// Export calls write with the lines of a thread of any workspace (threads §4.12): the thread with
// its cursors, each message that is durable at the call, and {"end":true,"messages":n}. What is cut
// meanwhile may be missing. It stops at the first error of write and returns it as it is.
func (e *Engine) Export(ctx context.Context, id []byte, write func(lines []byte) error) error {
	t := e.find(id)
	if t == nil {
		return fmt.Errorf("cannot export thread %q: there is none", id)
	}
	t.mu.Lock()
	latest, next := t.visible(e.safe()), t.gone+1
	lines := append(t.exported(latest), '\n')
	t.mu.Unlock()
	err := e.storeUpTo(e.safe()) // rows have all of them
	messages := int64(0)
	for next <= latest && err == nil {
		err = e.eachRow(t, next, latest, func(seq uint64, m *message) bool {
			lines = append(m.appendJSON(lines, seq), '\n')
			messages, next = messages+1, seq+1
			return len(lines) < exportBytes
		})
		if err = cmp.Or(err, ctx.Err()); err == nil {
			err = write(lines)
		}
		lines = lines[:0]
		t.mu.Lock()
		next = max(next, t.gone+1)
		t.mu.Unlock()
	}
	if err != nil {
		return err
	}
	return write(append(jsonx.Build(lines).Bool("end", true).Int("messages", messages).End(), '\n'))
}

// exported returns the thread as an export has it. Caller holds mu.
func (t *thread) exported(latest uint64) []byte {
	b := jsonx.Build(nil).Text("thread_id", t.made.ID).Text("workspace_id", t.made.Workspace).Text("title", t.made.Title)
	b = b.Text("type", Type(t.made.Type).String()).Text("status", t.status.String()).Texts("participants", t.made.Participants)
	b = appendMoment(appendMoment(b, "created_at", t.made.At), "updated_at", t.updated)
	b = append(b.Int("latest_seq", int64(latest)).Int("first_seq", int64(t.gone+1)).Name("cursors"), '[')
	cursors := make([]*cursor, 0, len(t.cursors))
	for _, c := range t.cursors {
		cursors = append(cursors, c)
	}
	slices.SortFunc(cursors, func(a, b *cursor) int { return cmp.Compare(a.agent, b.agent) })
	for i, c := range cursors {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.Build(b).Text("agent_id", c.agent).Int("last_read_seq", int64(c.seq))
		b = appendMoment(b, "updated_at", c.at).End()
	}
	return append(append(b, ']'), '}')
}
