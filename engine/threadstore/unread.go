package threadstore

import (
	"slices"

	"trunkline/engine/journal"
)

// UnreadMode is what is done for participants with unread messages (threads §5.6).
type UnreadMode uint8

// The modes.
const (
	ReportUnread UnreadMode = iota
	TriggerManaged
	TriggerAll
)

// unreadDelay is how old the newest unread message has to be before a job is made, in milliseconds.
const unreadDelay = 10_000

// count takes a message into u.
func (u *unread) count(sender string, seq uint64) {
	if systemSender(sender) {
		return
	}
	if u.Sender != sender {
		u.Sender, u.Other = sender, u.Last
	}
	u.Last = seq
}

// byOthers returns the number of the last message by another agent than the named one, 0 if there
// is none.
func (u *unread) byOthers(agent string) uint64 {
	if agent == u.Sender {
		return u.Other
	}
	return u.Last
}

// notifiedOf returns up to where unread messages of an agent were reported.
func (u *unread) notifiedOf(agent string) uint64 {
	for i := range u.Notified {
		if u.Notified[i].Agent == agent {
			return u.Notified[i].Seq
		}
	}
	return 0
}

func (u *unread) notify(agent string, seq uint64) {
	i := slices.IndexFunc(u.Notified, func(n notified) bool { return n.Agent == agent })
	if i < 0 {
		u.Notified = append(u.Notified, notified{Agent: agent, Seq: seq})
		return
	}
	u.Notified[i].Seq = max(seq, u.Notified[i].Seq)
}

// notify notes that unread messages of an agent up to seq were reported. Caller holds t.mu.
func (e *Engine) notify(t *thread, agent string, seq uint64) {
	if t.unread.notifiedOf(agent) >= seq {
		return
	}
	t.unread.notify(agent, seq)
	t.index = e.record(opNotify, &notified{Number: t.made.Number, Agent: agent, Seq: seq})
}

// Unread is a participant with unread messages whose runtime does not read them.
type Unread struct {
	Thread, Workspace, Agent string
	Latest                   uint64
	// Trigger is set where a job is to be made.
	Trigger bool
}

// Unread calls report for the participants with unread messages that were not reported before, and
// returns how many have such messages at all (threads §5.6).
func (e *Engine) Unread(now int64, report func(Unread)) (total int) {
	var found []Unread
	_ = e.eachThread(func(t *thread) error {
		found = found[:0]
		t.mu.Lock()
		if t.status != Closed {
			total += e.unreadOf(t, now, &found)
		}
		t.mu.Unlock()
		for i := range found {
			report(found[i])
		}
		return nil
	})
	return total
}

// unreadOf appends the new candidates of a thread, and returns how many it has. Caller holds t.mu.
func (e *Engine) unreadOf(t *thread, now int64, found *[]Unread) (total int) {
	for _, agent := range t.made.Participants {
		read := t.gone
		if c := t.cursors[agent]; c != nil {
			read = max(read, c.seq)
		}
		if t.unread.byOthers(agent) <= read {
			continue
		}
		sess := e.Session(t.made.Workspace, agent)
		if sess != nil && sess.Status == SessionActive && !e.stale(sess, now) {
			continue
		}
		total++
		if t.latest <= t.unread.notifiedOf(agent) || e.refuses() {
			continue
		}
		u := Unread{Thread: t.made.ID, Workspace: t.made.Workspace, Agent: agent, Latest: t.latest}
		if u.Trigger = e.wakes(t, sess, now); u.Trigger && apart(now, t.lastAt) < unreadDelay {
			continue // later
		}
		if !u.Trigger {
			e.notify(t, agent, t.latest)
			e.deliver(t, 0, nil, agent, now)
		}
		*found = append(*found, u)
	}
	return total
}

// wakes reports whether unread messages make a job.
func (e *Engine) wakes(t *thread, sess *SessionView, now int64) bool {
	managed := sess != nil && sess.Managed && sess.Status != SessionOffline && !e.stale(sess, now)
	switch e.cfg.Triggers.Unread {
	case TriggerAll:
		return t.status != Blocked && (managed || !e.cfg.Triggers.NoFallback)
	case TriggerManaged:
		return t.status != Blocked && managed
	}
	return false
}

// Ack moves the cursor of the actor to seq (threads §4.5) and returns the cursor's time.
func (e *Engine) Ack(a *Actor, id []byte, seq uint64, now int64) (r Receipt, _ Refusal) {
	t, code := e.open(a, id, a.Rank != Coordinator)
	if code != OK {
		return r, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	latest, c := t.visible(max(e.safe(), a.Seen)), t.cursors[a.Agent]
	switch {
	case seq > latest:
		return r, Refusal{Code: AckBeyond, N: int64(latest)}
	case c != nil && seq < c.seq:
		return r, Refusal{Code: AckBehind, N: int64(c.seq), Index: c.index}
	case c != nil && seq == c.seq:
		return Receipt{Index: c.index, At: c.at}, Refusal{}
	case c == nil && len(t.cursors) >= e.cfg.MaxCursors:
		return r, Refusal{Code: TooMany}
	case e.refuses():
		return r, Refusal{Code: NotStored}
	}
	message, err := e.idOf(t, seq)
	if err != nil {
		return r, Refusal{Code: Failed, Err: err}
	}
	if c == nil {
		c = &cursor{agent: a.Agent}
		t.setCursor(c)
	}
	c.seq, c.message, c.at = seq, message, max(now, c.at)
	rec := &t.scratch.cursor
	rec.Number = t.made.Number
	c.state(&rec.Cursor)
	c.index = e.record(opCursor, rec)
	t.index = c.index
	e.heard(a.Workspace, a.Agent, now)
	return Receipt{Index: c.index, At: c.at}, Refusal{}
}

// cursor is how far an agent has read.
type cursor struct {
	agent   string
	seq     uint64
	message rawID // at seq; zero at 0
	at      int64
	index   journal.Index // of its last change
}

// state makes s the recorded form of c.
func (c *cursor) state(s *cursorState) {
	s.Agent, s.Seq, s.At = c.agent, c.seq, c.at
	s.Message = append(s.Message[:0], c.message[:]...)
}

func (t *thread) setCursor(c *cursor) {
	if t.cursors == nil {
		t.cursors = map[string]*cursor{}
	}
	t.cursors[c.agent] = c
}
