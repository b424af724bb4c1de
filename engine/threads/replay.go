package threads

import (
	"errors"
	"fmt"

	"trunkline/engine/journal"
)

// replay implements store.Ordered.
type replay struct {
	e       *Engine
	threads map[uint64]*thread // by number
	joined  bool               // the rows fit what comes next
}

// maxReplayed is how many bytes of rows are kept in memory before they are stored.
const maxReplayed = 8 << 20

// Recovering implements store.Ordered.
func (r *replay) Recovering(on bool) {
	if on {
		return
	}
	if err := r.join(); err != nil {
		r.e.cfg.Failed(err)
	}
	r.threads = nil
	r.e.numbers.sort()
}

// Latest implements store.Ordered: the records carry no reading of the monotonic clock.
func (r *replay) Latest() int64 { return 0 }

// Load implements store.Ordered.
func (r *replay) Load(rec []byte) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: it is empty", errBadRecord)
	}
	switch body := rec[1:]; rec[0] {
	case snapEngine:
		var s engineState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		if r.e.archive.to != nil {
			return nil // the rows are those of the node that wrote it
		}
		r.e.stored.Store(s.Stored)
		return r.e.disk.Fits(s.Identity, s.Stored)
	case snapArchive:
		var s archiveState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		return r.rejoin(&s)
	case snapThread:
		var s threadState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		return r.thread(&s)
	case snapJob:
		var s jobState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		return r.job(&s, s.Index, false)
	case snapSession:
		var s sessionState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		r.e.sessions.replay(s, s.Index)
		return nil
	}
	return fmt.Errorf("%w: kind %q", errBadRecord, rec[0])
}

type unmarshaler interface {
	UnmarshalMsg(b []byte) ([]byte, error)
}

func unmarshal(to unmarshaler, b []byte) error {
	rest, err := to.UnmarshalMsg(b)
	if err == nil && len(rest) > 0 {
		err = errors.New("more follows")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errBadRecord, err)
	}
	return nil
}

// thread puts back a thread.
func (r *replay) thread(s *threadState) error {
	t := &thread{made: s.Made, status: Status(s.Status), updated: s.Updated, index: s.Index, latest: s.Latest, lastAt: s.LastAt,
		unread: s.Unread, loop: s.Loop}
	if s.Status > uint8(Closed) || s.Made.Type > uint8(Incident) || copy(t.lastID[:], s.LastID) != idBytes || r.threads[s.Made.Number] != nil {
		return fmt.Errorf("%w: thread %d", errBadRecord, s.Made.Number)
	}
	for i := range s.Cursors {
		if err := t.loadCursor(&s.Cursors[i], s.Index); err != nil {
			return err
		}
	}
	r.threads[s.Made.Number] = t
	r.e.numbers.Lock()
	defer r.e.numbers.Unlock()
	r.e.link(t, hashCreation(t.made.Workspace, t.made.Creator, []byte(t.made.Key)))
	return nil
}

func (t *thread) loadCursor(s *cursorState, index journal.Index) error {
	c := &cursor{agent: s.Agent, seq: s.Seq, at: s.At, index: index}
	if copy(c.message[:], s.Message) != idBytes {
		return fmt.Errorf("%w: cursor of thread %d", errBadRecord, t.made.Number)
	}
	t.setCursor(c)
	return nil
}

// Apply implements store.Ordered. A change that a snapshot has already is only put into the rows
// again.
func (r *replay) Apply(rec []byte, index journal.Index) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: it is empty", errBadRecord)
	}
	if err := r.join(); err != nil {
		return err
	}
	if err := r.apply(rec[0], rec[1:], index); err != nil {
		return err
	}
	if r.e.hot.unstored.Load() > maxReplayed {
		return r.store(index)
	}
	return nil
}

// store stores what was replayed up to an index.
func (r *replay) store(index journal.Index) error {
	if err := r.e.storeUpTo(index); err != nil {
		return err
	}
	r.e.jobs.mu.Lock()
	defer r.e.jobs.mu.Unlock()
	r.e.forgetEnded()
	return nil
}

func (r *replay) apply(kind byte, body []byte, index journal.Index) error {
	switch kind {
	case opThread:
		var m threadMade
		if err := unmarshal(&m, body); err != nil {
			return err
		}
		r.event(&m.Audit, index)
		if r.threads[m.Number] != nil {
			return nil
		}
		none := rawID{}
		return r.thread(&threadState{Index: index, Made: m, Updated: m.At, LastID: none[:]})
	case opMessage:
		var m messagePosted
		if err := unmarshal(&m, body); err != nil {
			return err
		}
		return r.message(&m, index)
	case opCursor:
		var m cursorMoved
		if err := unmarshal(&m, body); err != nil {
			return err
		}
		t, err := r.find(m.Number)
		if err == nil && index > t.index {
			t.index = index
			err = t.loadCursor(&m.Cursor, index)
		}
		return err
	case opStatus:
		var m statusChanged
		if err := unmarshal(&m, body); err != nil {
			return err
		}
		r.event(&m.Audit, index)
		t, err := r.find(m.Number)
		if err == nil && index > t.index && m.Status <= uint8(Closed) {
			if t.index, t.status, t.updated = index, Status(m.Status), m.At; m.Audit.Operation == opAutoBlock {
				t.loop = loop{}
			}
		}
		return err
	case opSession:
		var s sessionState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		r.e.sessions.replay(s, index)
		return nil
	case opJob:
		var s jobState
		if err := unmarshal(&s, body); err != nil {
			return err
		}
		return r.job(&s, index, true)
	case opNotify:
		var n notified
		if err := unmarshal(&n, body); err != nil {
			return err
		}
		t, err := r.find(n.Number)
		if err == nil && index > t.index {
			t.index = index
			t.unread.notify(n.Agent, n.Seq)
		}
		return err
	case opAudit:
		var ev auditEvent
		if err := unmarshal(&ev, body); err != nil {
			return err
		}
		r.event(&ev, index)
		return nil
	case opArchive:
		var m archived
		if err := unmarshal(&m, body); err != nil {
			return err
		}
		return r.archivedAt(&m, index)
	}
	return fmt.Errorf("%w: kind %q", errBadRecord, kind)
}

func (r *replay) event(ev *auditEvent, index journal.Index) {
	r.e.hot.mu.Lock()
	defer r.e.hot.mu.Unlock()
	r.e.addEvent(&r.e.hot, ev, index)
}

func (r *replay) find(number uint64) (*thread, error) {
	t := r.threads[number]
	if t == nil {
		return nil, fmt.Errorf("%w: thread %d is not known", errBadRecord, number)
	}
	return t, nil
}

// message puts back a message. The snapshot may have counted it.
func (r *replay) message(m *messagePosted, index journal.Index) error {
	t, err := r.find(m.Number)
	if err != nil {
		return err
	}
	row, err := parseRow(m.Row)
	known := index <= t.index
	if err != nil || !known && m.Seq != t.latest+1 || known && m.Seq > t.latest {
		return fmt.Errorf("%w: message %d of thread %d after %d", errBadRecord, m.Seq, m.Number, t.latest)
	}
	r.e.hot.mu.Lock()
	kept := r.e.hot.add(m.Row, entry{thread: t, seq: m.Seq, index: index})
	r.e.hot.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hot = append(t.hot, kept); !known {
		t.index = index
		t.latest, t.lastID, t.lastAt, t.updated = m.Seq, row.id, row.created, max(t.updated, row.created)
		t.unread.count(string(row.sender), m.Seq)
	}
	r.know(t, &row, m.Seq)
	return nil
}

// know puts back the idempotency key of a message, if it has one.
func (r *replay) know(t *thread, row *message, seq uint64) {
	if len(row.key) > 0 {
		hash := hashKey(t.made.Number, row.sender, row.key)
		r.e.keys.Add(&hash, seq, row.created)
	}
}

// job puts back a job; logged is set for a record of the log.
func (r *replay) job(s *jobState, index journal.Index, logged bool) error {
	t, err := r.find(s.Thread)
	if err != nil {
		return err
	}
	if logged {
		r.e.hot.mu.Lock()
		r.e.addJob(&r.e.hot, s, index)
		r.e.hot.mu.Unlock()
		if s.Ended && index > t.index {
			t.index = index
			t.count(s)
		}
		s.Ended = false
	}
	r.e.restore(s, t, index)
	return nil
}

// replay puts back a session, unless a later state of it is there.
func (s *sessions) replay(st sessionState, index journal.Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := agentKey{st.Workspace, st.Agent}
	sess := s.agents[key]
	if sess == nil {
		sess = &session{sessionState: sessionState{Workspace: st.Workspace, Agent: st.Agent}}
		s.agents[key] = sess
	} else if index <= sess.index {
		return
	}
	s.hold(sess, st.Session)
	sess.sessionState, sess.index = st, index
	sess.Index = 0
}
