package threadstore

import (
	"context"
	"errors"
	"hash/crc64"
	"slices"
	"strings"

	"trunkline/engine/store"
)

// Tag is the first byte of the engine's records in a store.
const Tag byte = 'T'

// errBadRecord: a record is not one of the engine, or does not follow from those before it.
var errBadRecord = errors.New("cannot parse record of agent threads")

// Machine returns the engine as a machine of a store.
func (e *Engine) Machine() store.Machine {
	return store.Machine{Tag: Tag, State: e, Ordered: &replay{e: e, threads: map[uint64]*thread{}}, Prepare: e.archiveRows}
}

// WriteSnapshot implements store.State. Everything that was appended before the call is in the rows
// when the first record is written.
func (e *Engine) WriteSnapshot(write func(rec []byte) error) error {
	if err := e.store.Barrier(context.Background()); err != nil {
		return err
	}
	safe := e.safe()
	if err := e.storeAll(safe); err != nil {
		return err
	}
	e.webhooks.change.Lock()
	defer e.webhooks.change.Unlock()
	list, hooks := e.sessions.list(), e.webhooks.states()
	has, err := e.markArchived(safe)
	if err != nil {
		return err
	}
	if e.stored.Load() == 0 && len(list)+len(hooks) == 0 && has == nil {
		return nil // there was never anything
	}
	identity, err := e.disk.Flush(safe)
	if err != nil {
		return err
	}
	state := engineState{Stored: safe, Identity: identity}
	var buf []byte
	put := func(kind byte, rec marshaler) error {
		buf, _ = rec.MarshalMsg(append(buf[:0], kind)) // it does not fail
		return write(buf)
	}
	if err := put(snapEngine, &state); err != nil {
		return err
	}
	for i := range hooks {
		if err := put(snapWebhook, &hooks[i]); err != nil {
			return err
		}
	}
	e.erasures.walking.Lock()
	defer e.erasures.walking.Unlock()
	err = e.eachThread(func(t *thread) error {
		t.mu.Lock()
		s, backlogs, gone := t.state(), t.backlogs(), t.gone
		t.mu.Unlock()
		err := put(snapThread, &s)
		if err == nil && gone > 0 {
			err = put(snapCut, &threadCut{s.Made.Number, gone + 1})
		}
		for i := 0; i < len(backlogs) && err == nil; i++ {
			err = put(snapBacklog, &backlogs[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := put(snapSession, &s); err != nil {
			return err
		}
	}
	for _, s := range e.openJobs() {
		if err := put(snapJob, &s); err != nil {
			return err
		}
	}
	for _, s := range e.timers.list() {
		if err := put(snapTimer, &s); err != nil {
			return err
		}
	}
	for _, er := range e.erasures.states(false) {
		if err := put(snapErasure, &er); err != nil {
			return err
		}
	}
	if has == nil {
		return nil
	}
	return put(snapArchive, has)
}

// eachThread calls f with all threads; those that are made meanwhile may be missing.
func (e *Engine) eachThread(f func(*thread) error) error {
	var list []*thread
	for i := range e.shards {
		s := &e.shards[i]
		list = list[:0]
		s.mu.RLock()
		for _, t := range s.threads {
			list = append(list, t)
		}
		s.mu.RUnlock()
		for _, t := range list {
			if err := f(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// state returns what a snapshot has of t. Caller holds mu.
func (t *thread) state() threadState {
	s := threadState{Index: t.index, Made: t.made, Status: uint8(t.status), Updated: t.updated,
		Latest: t.latest, LastID: append([]byte(nil), t.lastID[:]...), LastAt: t.lastAt, Unread: t.unread, Loop: t.loop}
	s.Unread.Notified = slices.Clone(s.Unread.Notified)
	for _, c := range t.cursors {
		var cs cursorState
		c.state(&cs)
		s.Cursors = append(s.Cursors, cs)
	}
	return s
}

// list returns all sessions.
func (s *sessions) list() []sessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]sessionState, 0, len(s.agents))
	for _, sess := range s.agents {
		st := sess.sessionState
		st.Index = sess.index
		all = append(all, st)
	}
	return all
}

// Digest implements store.State. A heartbeat counts before its record is written.
func (e *Engine) Digest() (sum uint64) {
	table := crc64.MakeTable(crc64.ECMA)
	var buf []byte
	add := func(rec marshaler) {
		buf, _ = rec.MarshalMsg(buf[:0])
		sum += store.Mix(crc64.Checksum(buf, table))
	}
	e.webhooks.change.Lock()
	defer e.webhooks.change.Unlock()
	for _, s := range e.webhooks.states() {
		s.Index = 0
		add(&s)
	}
	_ = e.eachThread(func(t *thread) error {
		t.mu.Lock()
		s, backlogs, gone := t.state(), t.backlogs(), t.gone
		t.mu.Unlock()
		for i := range backlogs {
			add(&backlogs[i])
		}
		add(&threadCut{s.Made.Number, gone + 1})
		cursors := s.Cursors
		s.Index, s.Cursors = 0, nil
		slices.SortFunc(s.Unread.Notified, func(a, b notified) int { return strings.Compare(a.Agent, b.Agent) })
		add(&s)
		for i := range cursors {
			add(&cursorMoved{Number: s.Made.Number, Agent: cursors[i].Agent, Cursor: cursors[i]})
		}
		return nil
	})
	for _, s := range e.sessions.list() {
		s.Index = 0
		add(&s)
	}
	for _, s := range e.openJobs() {
		s.Index = 0
		add(&s)
	}
	for _, s := range e.timers.list() {
		s.Index = 0
		add(&s)
	}
	for _, er := range e.erasures.states(false) {
		er.Index = 0
		add(&er)
	}
	return sum
}

// openJobs returns the jobs that are not final.
func (e *Engine) openJobs() []jobState {
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	list := make([]jobState, 0, len(e.jobs.open))
	for _, j := range e.jobs.open {
		list = append(list, j.jobState)
	}
	return list
}
