package threadstore

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
)

// maxDeadLetters bounds the dead letters of a webhook: beyond it the oldest is dropped.
const maxDeadLetters = 1000

// webhooks are those of the settings. change is held while they are replaced, and while a snapshot
// is written, which has them before the first thread. mu is behind thread.mu, before hot.mu.
type webhooks struct {
	list       atomic.Pointer[[]*webhook] // nil: there are none
	change, mu sync.Mutex
	work       chan struct{}
	marked     atomic.Uint64 // index of the last record that made something to deliver
}

// webhook is guarded by webhooks.mu.
type webhook struct {
	webhookState
	queue   backlogs
	taken   int   // backlogs whose delivery is under way
	looked  int64 // time of the last look
	removed bool
}

// backlog is what a webhook has still to deliver of a thread; it ends when there is nothing. The
// index of the thread is that of its last record, too. A change takes thread.mu and webhooks.mu.
type backlog struct {
	backlogState
	hook   *webhook
	thread *thread
	at     uint64 // Sent, with what is not recorded yet
	due    int64
	saved  int64 // time of the last record
	pos    int   // in the queue; -1: it is taken
}

// backlogs are a heap by due: heap.Interface.
type backlogs []*backlog

func (q backlogs) Len() int           { return len(q) }
func (q backlogs) Less(i, j int) bool { return q[i].due < q[j].due }
func (q backlogs) Swap(i, j int)      { q[i], q[j], q[i].pos, q[j].pos = q[j], q[i], q[j].pos, q[i].pos }
func (q *backlogs) Push(x any)        { x.(*backlog).pos, *q = len(*q), append(*q, x.(*backlog)) }
func (q *backlogs) Pop() any {
	last := len(*q) - 1
	b := (*q)[last]
	*q, (*q)[last], b.pos = (*q)[:last], nil, -1
	return b
}

func (hs *webhooks) all() []*webhook {
	if list := hs.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (hs *webhooks) find(name string) *webhook {
	for _, h := range hs.all() {
		if h.Webhook.Name == name {
			return h
		}
	}
	return nil
}

func (w *Webhook) selects(t *thread, event string) bool {
	return (w.Workspace == "" || w.Workspace == t.made.Workspace) &&
		(len(w.Types) == 0 || slices.Contains(w.Types, Type(t.made.Type).String())) &&
		(len(w.Events) == 0 || slices.Contains(w.Events, event))
}

// eventOf returns what Webhook.Events has for a message.
func eventOf(kind Kind, metadata []byte) string {
	if kind == Chat {
		return "message"
	}
	var v [1]jsonx.Value
	jsonx.Pick(metadata, []string{"event_type"}, v[:])
	text, _ := v[0].Text()
	return string(text)
}

// SetWebhooks replaces the webhooks. A new one receives what is posted from then on; what one that
// is removed has not delivered is dropped. It waits for a snapshot that is being written.
func (e *Engine) SetWebhooks(list []Webhook) {
	hs := &e.webhooks
	hs.change.Lock()
	defer hs.change.Unlock()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	e.hot.mu.Lock() // a post with a later record finds the webhook
	defer e.hot.mu.Unlock()
	set := func(s webhookState) { hs.apply(&s, e.append(opWebhook, &s)) }
	for _, h := range hs.all() {
		if !slices.ContainsFunc(list, func(w Webhook) bool { return w.Name == h.Webhook.Name }) {
			set(webhookState{Webhook: Webhook{Name: h.Webhook.Name}, Removed: true})
		}
	}
	for _, w := range list {
		if h := hs.find(w.Name); h == nil {
			set(webhookState{Webhook: w})
		} else if fmt.Sprintf("%q", w) != fmt.Sprintf("%q", h.Webhook) {
			set(webhookState{Webhook: w, Dead: h.Dead, Dropped: h.Dropped})
		}
	}
}

// apply takes over the record of a webhook. Caller holds mu, and hot.mu where others post.
func (hs *webhooks) apply(s *webhookState, index journal.Index) {
	h, list := hs.find(s.Webhook.Name), slices.Clone(hs.all())
	if h == nil {
		h = new(webhook)
		list = append(list, h)
	}
	h.webhookState, h.removed = *s, s.Removed
	h.Index = index
	// The backlogs of one that is removed count nothing, and go with the next of their threads.
	list = slices.DeleteFunc(list, func(h *webhook) bool { return h.removed })
	if hs.list.Store(&list); len(list) == 0 {
		hs.list.Store(nil)
	}
}

// deliver has the last message of t delivered to the webhooks that select it, or a report of an
// agent's unread messages. Caller holds t.mu.
func (e *Engine) deliver(t *thread, kind Kind, metadata []byte, unread string, now int64) {
	hs, event := &e.webhooks, "unread_dormant"
	if hs.list.Load() == nil {
		return
	}
	if unread == "" {
		event = eventOf(kind, metadata)
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.all() {
		if !h.Webhook.selects(t, event) {
			continue
		}
		if unread == "" {
			hs.backlog(h, t, t.latest-1, now)
			continue
		}
		b := hs.backlog(h, t, t.latest, now)
		b.add(Letter{Thread: t.made.ID, Seq: t.latest, Agent: unread, At: now})
		e.saveBacklog(b, nil, now)
	}
}

// backlog returns that of a webhook in a thread, and has it delivered soon unless it waits for
// another attempt. A new one begins behind message sent. Caller holds t.mu and mu.
func (hs *webhooks) backlog(h *webhook, t *thread, sent uint64, now int64) *backlog {
	b := t.pending[h]
	if b == nil {
		maps.DeleteFunc(t.pending, func(other *webhook, _ *backlog) bool { return other.removed })
		b = &backlog{hook: h, thread: t, at: sent, due: now, saved: now,
			backlogState: backlogState{Thread: t.made.Number, Webhook: h.Webhook.Name, Sent: sent}}
		if t.pending == nil {
			t.pending = map[*webhook]*backlog{}
		}
		t.pending[h] = b
		heap.Push(&h.queue, b)
	} else if b.Attempts == 0 && b.pos >= 0 {
		b.due = now
		heap.Fix(&h.queue, b.pos)
	}
	hs.marked.Store(max(hs.marked.Load(), t.index))
	hs.wake()
	return b
}

func (hs *webhooks) wake() {
	select {
	case hs.work <- struct{}{}:
	default:
	}
}

// add adds a letter in place of an earlier report about the same agent.
func (b *backlog) add(l Letter) {
	same := func(o Letter) bool { return o.Agent == l.Agent && (o.Seq == l.Seq || l.Agent != "" && o.Seq < l.Seq) }
	b.Extra = append(slices.DeleteFunc(slices.Clone(b.Extra), same), l)
	slices.SortStableFunc(b.Extra, func(x, y Letter) int { return cmp.Compare(x.Seq, y.Seq) })
}

// saveBacklog records b with new dead letters, unless nothing can be recorded: a later record has
// it then. It ends b if nothing is left. Caller holds thread.mu and mu.
func (e *Engine) saveBacklog(b *backlog, dead []Letter, now int64) {
	if b.hook.removed || e.refuses() {
		return
	}
	b.Sent, b.saved = b.at, now
	rec := b.backlogState
	rec.Dead = dead
	b.thread.index = e.record(opBacklog, &rec)
	b.hook.bury(&rec, b.thread.index)
	b.settle()
}

// settle ends b if nothing is left. Caller holds thread.mu and mu.
func (b *backlog) settle() {
	if b.Sent < b.thread.latest || len(b.Extra) > 0 {
		return
	}
	if b.pos >= 0 {
		heap.Remove(&b.hook.queue, b.pos)
	}
	if delete(b.thread.pending, b.hook); len(b.thread.pending) == 0 {
		b.thread.pending = nil
	}
}

// bury takes over what the record of a backlog changes of the dead letters: those that are to be
// delivered are none any more. Caller holds mu.
func (h *webhook) bury(s *backlogState, index journal.Index) {
	if len(s.Extra)+len(s.Dead) == 0 {
		return
	}
	dead := slices.DeleteFunc(slices.Clone(h.Dead), func(l Letter) bool { return slices.Contains(s.Extra, l) })
	dead = append(dead, s.Dead...)
	over := max(len(dead)-maxDeadLetters, 0)
	h.Dead, h.Dropped, h.Index = dead[over:], h.Dropped+uint64(over), index
}

// states returns what a snapshot has of the webhooks. Lists in states are replaced, not changed.
func (hs *webhooks) states() (list []webhookState) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.all() {
		list = append(list, h.webhookState)
	}
	return list
}

// backlogs returns what a snapshot has of t. Caller holds mu, and webhooks.change.
func (t *thread) backlogs() (list []backlogState) {
	for h, b := range t.pending {
		if !h.removed {
			list = append(list, b.backlogState)
		}
	}
	return list
}

// webhook puts back a webhook.
func (r *replay) webhook(s *webhookState, index journal.Index) {
	if h := r.e.webhooks.find(s.Webhook.Name); h == nil || index > h.Index {
		r.e.webhooks.apply(s, index)
	}
}

// backlog puts back a backlog; index is 0 for one of a snapshot.
func (r *replay) backlog(s *backlogState, index journal.Index) error {
	t, err := r.find(s.Thread)
	if err != nil {
		return err
	}
	hs := &r.e.webhooks
	h := hs.find(s.Webhook)
	if h != nil && index > h.Index {
		h.bury(s, index)
	}
	if h == nil || index > 0 && index <= t.index { // a snapshot was written behind the end of the webhook
		return nil
	}
	if s.Sent > t.latest {
		return fmt.Errorf("%w: message %d of thread %d after %d was delivered", errBadRecord, s.Sent, s.Thread, t.latest)
	}
	t.index, s.Dead = max(t.index, index), nil
	b := hs.backlog(h, t, s.Sent, s.Next)
	b.backlogState, b.at, b.due = *s, s.Sent, s.Next
	heap.Fix(&h.queue, b.pos)
	b.settle()
	return nil
}
