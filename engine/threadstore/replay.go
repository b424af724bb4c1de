package threadstore

import (
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
	if r.e.directory.off = on; on {
		r.e.loading = r.threads
		return
	}
	if err := r.join(); err != nil {
		r.e.cfg.Failed(err)
	}
	r.threads, r.e.loading = nil, nil
	r.e.numbers.sort()
	for _, t := range r.e.numbers.list {
		r.e.directory.add(t)
	}
}

// Latest implements store.Ordered: the records carry no reading of the monotonic clock.
func (r *replay) Latest() int64 { return 0 }

// Load implements store.Ordered.
func (r *replay) Load(rec []byte) error {
	made, err := decode(snapshot, rec)
	switch s := made.(type) {
	case *engineState:
		if r.e.archive.to != nil {
			return nil // the rows are those of the node that wrote it
		}
		r.e.stored.Store(s.Stored)
		return r.e.disk.Fits(s.Identity, s.Stored)
	case *archiveState:
		return r.rejoin(s)
	case *threadState:
		return r.thread(s)
	case *threadCut:
		t, err := r.find(s.Number)
		if err == nil {
			t.gone = s.First - 1
		}
		return err
	case *erasure:
		r.e.erasures.put(*s, s.Index)
	case *jobState:
		return r.job(s, s.Index, false)
	case *timerState:
		_ = r.timer(s, s.Index) // its thread may be later than those of the snapshot: the log has both
	case *sessionState:
		r.e.sessions.replay(*s, s.Index)
	case *webhookState:
		r.webhook(s, s.Index)
	case *backlogState:
		return r.backlog(s, 0)
	}
	return err
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
	made, err := decode(logged, rec)
	if err == nil {
		err = r.join()
	}
	if err == nil {
		err = r.apply(made, index)
	}
	if err != nil {
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

func (r *replay) apply(made unmarshaler, index journal.Index) error {
	switch m := made.(type) {
	case *threadMade:
		r.event(&m.Audit, index)
		if r.threads[m.Number] != nil {
			return nil
		}
		none := rawID{}
		return r.thread(&threadState{Index: index, Made: *m, Updated: m.At, LastID: none[:]})
	case *messagePosted:
		return r.message(m, index)
	case *cursorMoved:
		t, err := r.find(m.Number)
		if err == nil && index > t.index {
			t.index = index
			err = t.loadCursor(&m.Cursor, index)
		}
		return err
	case *statusChanged:
		r.event(&m.Audit, index)
		t, err := r.find(m.Number)
		if err == nil && index > t.index && m.Status <= uint8(Closed) {
			if t.index, t.status, t.updated = index, Status(m.Status), m.At; m.Audit.Operation == opAutoBlock {
				t.loop = loop{}
			}
		}
		return err
	case *participantsChanged:
		r.event(&m.Audit, index)
		t, err := r.find(m.Number)
		if err == nil && index > t.index {
			t.setParticipants(m, index)
		}
		return err
	case *sessionState:
		r.e.sessions.replay(*m, index)
	case *jobState:
		return r.job(m, index, true)
	case *notified:
		t, err := r.find(m.Number)
		if err == nil && index > t.index {
			t.index = index
			t.unread.notify(m.Agent, m.Seq)
		}
		return err
	case *auditEvent:
		r.event(m, index)
	case *archived:
		return r.archivedAt(m, index)
	case *webhookState:
		r.webhook(m, index)
	case *backlogState:
		return r.backlog(m, index)
	case *timerState:
		return r.timer(m, index)
	case *timerMoved:
		r.e.timers.moved(m, index)
	case *archiveState:
		return r.rebuiltAt(m, index)
	case *threadCut:
		return r.cut(m, index)
	case *erasure:
		return r.erase(m, index)
	}
	return nil
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
		r.e.deliver(t, row.kind, row.metadata, "", row.created)
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
	if err != nil && !logged {
		return nil // made while the snapshot was written: the log has both
	}
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
