package threadstore

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"slices"

	"trunkline/codec/jsonx"
)

// Times of deliveries in milliseconds, and how many messages one look for the next one reads.
const (
	saveEvery    = 100           // between two records of successes: a crash repeats the rest
	deliveryBase = 5_000         // bound of the random pause behind the first failure
	deliveryMost = 3600_000      // to which the bound doubles
	deliverFor   = 24 * 3600_000 // from the first attempt on
	maxScanned   = 64
)

// Delivery is a Letter on its way to the target of a webhook. ID is the same in all attempts, and
// for a message its own; Body is JSON.
type Delivery struct {
	Letter
	ID    string
	Body  []byte
	b     *backlog
	extra bool // it is in backlogState.Extra
}

// DeliveryWork returns a channel that has an element after something has become due, or
// WakeDeliveries was called.
func (e *Engine) DeliveryWork() <-chan struct{} { return e.webhooks.work }

// WakeDeliveries has the reader of DeliveryWork look again.
func (e *Engine) WakeDeliveries() { e.webhooks.wake() }

// AwaitDeliveries returns once the messages that were posted before are durable.
func (e *Engine) AwaitDeliveries(ctx context.Context) error {
	return e.store.Await(ctx, e.webhooks.marked.Load())
}

// TakeDelivery returns what a webhook is to deliver next; FinishDelivery must follow, and only then
// the next one of the same thread is returned. Where d is nil, nothing is due for wait
// milliseconds; 0: look again.
func (e *Engine) TakeDelivery(name string) (d *Delivery, wait int64, err error) {
	hs, now := &e.webhooks, e.cfg.Now()
	hs.mu.Lock()
	h := hs.find(name)
	if wait = deliveryMost; h != nil && len(h.queue) > 0 {
		h.follow(now)
		wait = h.queue[0].due - now
	}
	if wait > 0 {
		hs.mu.Unlock()
		return nil, wait, nil
	}
	b, w := heap.Pop(&h.queue).(*backlog), h.Webhook
	h.taken++
	hs.mu.Unlock()
	t := b.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	d, at, visible, err := e.nextDelivery(b, &w)
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if b.at = at; d != nil && err == nil {
		if d.Body != nil {
			return d, 0, nil
		}
		b.pass(d) // its message is gone
		e.saveBacklog(b, nil, now)
	}
	switch b.due = now + saveEvery; {
	case err != nil:
		b.due = now + deliveryBase
	case at < visible:
		b.due = now
	case at == t.latest && len(b.Extra) == 0 && apart(now, b.saved) >= saveEvery:
		e.saveBacklog(b, nil, now)
	}
	b.release()
	return nil, 0, err
}

// follow bounds the times by a clock that was set back. Caller holds webhooks.mu.
func (h *webhook) follow(now int64) {
	if now < h.looked || h.looked == 0 {
		for _, b := range h.queue {
			if b.due = min(b.due, now+deliveryMost); b.Attempts == 0 {
				b.due = now
			}
		}
		heap.Init(&h.queue)
	}
	h.looked = now
}

// nextDelivery finds the first durable delivery of b that w selects. at is the message before it,
// or the last one that was read; visible is the last durable one. Caller holds thread.mu.
func (e *Engine) nextDelivery(b *backlog, w *Webhook) (d *Delivery, at, visible uint64, err error) {
	t := b.thread
	at, visible = b.at, t.visible(e.store.Safe())
	end := min(visible, at+maxScanned)
	extra := len(b.Extra) > 0 && b.Extra[0].Seq <= end
	if extra {
		end = b.Extra[0].Seq
	}
	var m message
	read := func(seq uint64) bool {
		row, bad := e.row(t, seq, nil) // nil: it is gone
		if err = bad; row != nil && bad == nil {
			m, err = parseRow(row)
		}
		return row != nil && err == nil
	}
	for ; at < end; at++ {
		if read(at+1) && w.selects(t, eventOf(m.kind, m.metadata)) {
			return t.delivery(&Delivery{Letter: Letter{Thread: t.made.ID, Seq: at + 1}, b: b}, &m), at, visible, nil
		}
		if err != nil {
			return nil, at, visible, err
		}
	}
	if extra {
		if d = (&Delivery{Letter: b.Extra[0], b: b, extra: true}); read(end) {
			t.delivery(d, &m)
		}
	}
	return d, at, visible, err
}

// delivery completes that of a letter by its message.
func (t *thread) delivery(d *Delivery, m *message) *Delivery {
	d.ID = string(appendID(nil, messagePrefix, &m.id))
	l, kind, at := &d.Letter, "message.posted", m.created
	if l.Agent != "" {
		sum := sha256.Sum256(append(m.id[:], l.Agent...))
		id := rawID(sum[:])
		d.ID, kind, at = string(appendID(nil, "unr_", &id)), "thread.unread_dormant", l.At
	}
	o := jsonx.Build(nil).Text("type", kind)
	o = append(AppendTime(append(o.Name("timestamp"), '"'), at), '"')
	data := jsonx.Build(o.Name("data")).Text("thread_id", t.made.ID).Text("workspace_id", t.made.Workspace)
	if data = data.Text("thread_type", Type(t.made.Type).String()); l.Agent != "" {
		data = data.Text("agent_id", l.Agent)
	}
	d.Body = append(m.appendJSON(data.Name("message"), l.Seq), '}', '}')
	return d
}

// release puts b back into the queue, unless it has ended. Caller holds thread.mu and webhooks.mu.
func (b *backlog) release() {
	if b.hook.taken--; b.thread.pending[b.hook] == b {
		heap.Push(&b.hook.queue, b)
	}
}

// Unattempted is the status of a delivery that was not attempted.
const Unattempted = -1

// FinishDelivery ends an attempt by the status of its answer, 0 without one: 2xx is a success. It
// reports whether the delivery was given up: it is a dead letter then.
func (e *Engine) FinishDelivery(d *Delivery, status int) (dead bool) {
	b, hs, now := d.b, &e.webhooks, e.cfg.Now()
	b.thread.mu.Lock()
	defer b.thread.mu.Unlock()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	defer b.release()
	b.due = now
	switch failed := b.Attempts > 0; {
	case status == Unattempted:
	case status/100 == 2:
		if b.pass(d); failed || d.extra || apart(now, b.saved) >= saveEvery {
			e.saveBacklog(b, nil, now)
		}
	default:
		if b.First == 0 || now < b.First { // the clock was set back
			b.First = now
		}
		if dead = now-b.First >= deliverFor && !e.refuses(); dead {
			l := d.Letter
			l.First, l.Status = b.First, uint32(status)
			b.pass(d)
			e.saveBacklog(b, []Letter{l}, now)
			break
		}
		b.Next = now + 1 + rand.Int64N(min(int64(deliveryBase)<<min(b.Attempts, 10), deliveryMost))
		b.Attempts, b.due = b.Attempts+1, b.Next
		e.saveBacklog(b, nil, now)
	}
	return dead
}

// pass goes on behind a delivery. Caller holds thread.mu and webhooks.mu.
func (b *backlog) pass(d *Delivery) {
	if b.Attempts, b.First, b.Next = 0, 0, 0; d.extra {
		b.Extra = slices.DeleteFunc(slices.Clone(b.Extra), func(l Letter) bool { return l == d.Letter })
	} else {
		b.at = max(b.at, d.Seq)
	}
}

// WebhookBacklog returns in how many threads a webhook has something to deliver, its dead letters,
// the oldest first, and how many of those were dropped.
func (e *Engine) WebhookBacklog(name string) (threads int, dead []Letter, dropped uint64) {
	e.webhooks.mu.Lock()
	defer e.webhooks.mu.Unlock()
	if h := e.webhooks.find(name); h != nil {
		threads, dead, dropped = len(h.queue)+h.taken, h.Dead, h.Dropped
	}
	return threads, dead, dropped
}

// Resend has dead letters delivered again, before all else of their threads: those of a thread,
// with a number; "" and 0 stand for any. It returns how many they are.
func (e *Engine) Resend(name, thread string, seq uint64) (n int) {
	hs, now := &e.webhooks, e.cfg.Now()
	_, dead, _ := e.WebhookBacklog(name)
	for _, l := range dead {
		t := e.find([]byte(l.Thread))
		if t == nil || thread != "" && l.Thread != thread || seq > 0 && l.Seq != seq {
			continue
		}
		t.mu.Lock()
		hs.mu.Lock()
		if h := hs.find(name); h != nil && slices.Contains(h.Dead, l) && !e.refuses() {
			if b := t.pending[h]; b != nil {
				b.Attempts, b.First, b.Next = 0, 0, 0 // of what waits behind it now
			}
			b := hs.backlog(h, t, t.latest, now)
			b.add(l)
			e.saveBacklog(b, nil, now)
			n++
		}
		hs.mu.Unlock()
		t.mu.Unlock()
	}
	return n
}
