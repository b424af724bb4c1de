package threads

import "trunkline/engine/journal"

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
