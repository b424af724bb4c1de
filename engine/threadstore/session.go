package threadstore

import (
	"slices"
	"sync"
	"time"

	"trunkline/engine/journal"
)

// SessionStatus is what a runtime reports of itself.
type SessionStatus uint8

// The states of sessions.
const (
	SessionActive SessionStatus = iota
	SessionIdle
	SessionOffline
)

var sessionNames = [...]string{"active", "idle", "offline"}

// String returns the name of s in the protocol.
func (s SessionStatus) String() string { return sessionNames[s] }

// Heartbeat is what an agent reports of its runtime. Its slices are lent.
type Heartbeat struct {
	Runtime            []byte
	Managed, Resumable bool
	Status             SessionStatus
}

// agentKey names an agent.
type agentKey struct{ workspace, agent string }

// session is the registered runtime of an agent.
type session struct {
	sessionState
	index journal.Index
	dirty bool // not in the journal yet
}

// sessions is the registry. A change is journaled within writeSessions: a heartbeat is answered
// before (threads D11).
type sessions struct {
	mu      sync.Mutex
	agents  map[agentKey]*session
	holders map[agentKey]string // by session identifier in place of the agent
	dirty   []*session
}

// writeSessions is how long a heartbeat may be unwritten.
const writeSessions = 500 * time.Millisecond

func (s *sessions) init() {
	s.agents, s.holders = map[agentKey]*session{}, map[agentKey]string{}
}

// Heartbeat registers the runtime of the actor (threads §4.8), and returns the time of the record.
// For a known session with equal texts it does not allocate.
func (e *Engine) Heartbeat(a *Actor, h *Heartbeat, now int64) (at int64, ref Refusal) {
	if at, ref = e.register(a, h, now); ref.Code == OK {
		e.heard(a.Workspace, a.Agent, now)
	}
	return at, ref
}

func (e *Engine) register(a *Actor, h *Heartbeat, now int64) (at int64, _ Refusal) {
	s := &e.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	key := agentKey{a.Workspace, a.Agent}
	if holder, held := s.holders[agentKey{a.Workspace, a.Session}]; held && holder != a.Agent {
		return 0, Refusal{Code: SessionHeld}
	}
	sess := s.agents[key]
	switch {
	case e.refuses():
		return 0, Refusal{Code: NotStored}
	case sess != nil:
	case len(s.agents) >= e.cfg.MaxSessions:
		return 0, Refusal{Code: TooMany}
	default:
		sess = &session{sessionState: sessionState{Workspace: a.Workspace, Agent: a.Agent}}
		s.agents[key] = sess
	}
	if sess.Session != a.Session {
		s.hold(sess, a.Session)
	}
	if sess.Runtime != string(h.Runtime) {
		sess.Runtime = string(h.Runtime)
	}
	sess.Managed, sess.Resumable, sess.Status = h.Managed, h.Resumable, uint8(h.Status)
	sess.At = max(now, sess.At)
	s.changed(sess)
	return sess.At, Refusal{}
}

// hold makes sess the holder of a session identifier. Caller holds mu.
func (s *sessions) hold(sess *session, id string) {
	if old := (agentKey{sess.Workspace, sess.Session}); s.holders[old] == sess.Agent {
		delete(s.holders, old)
	}
	s.holders[agentKey{sess.Workspace, id}] = sess.Agent
	sess.Session = id
}

// keepSessions writes what has changed, until Close, and once more then.
func (e *Engine) keepSessions() {
	tick, stale := time.NewTicker(writeSessions), time.NewTicker(staleEvery)
	defer tick.Stop()
	defer stale.Stop()
	for {
		select {
		case <-e.stop:
			e.writeSessions()
			return
		case <-tick.C:
			e.writeSessions()
		case <-stale.C:
			e.endStale(e.cfg.Now())
		}
	}
}

// staleEvery is the time between two looks for runtimes that are not heard of any more.
const staleEvery = 10 * time.Second

// endStale makes sessions offline that are stale (threads §5.3). A heartbeat revives them.
func (e *Engine) endStale(now int64) {
	s := &e.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.agents {
		if now-sess.At > e.cfg.Triggers.StaleAfter && sess.Status != uint8(SessionOffline) {
			sess.Status = uint8(SessionOffline)
			s.changed(sess)
		}
	}
}

// changed has a session written soon. Caller holds mu.
func (s *sessions) changed(sess *session) {
	if !sess.dirty {
		sess.dirty = true
		s.dirty = append(s.dirty, sess)
	}
}

// writeSession writes the session of an agent if it has changed.
func (e *Engine) writeSession(of agentKey) {
	s := &e.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.agents[of]
	if sess == nil || !sess.dirty || e.refuses() {
		return
	}
	sess.dirty = false
	sess.index = e.record(opSession, &sess.sessionState)
	at := slices.Index(s.dirty, sess)
	s.dirty = slices.Delete(s.dirty, at, at+1)
}

// writeSessions writes the sessions that have changed.
func (e *Engine) writeSessions() {
	s := &e.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for ; n < len(s.dirty) && !e.refuses(); n++ { // the next round has the rest
		sess := s.dirty[n]
		sess.dirty = false
		sess.index = e.record(opSession, &sess.sessionState)
	}
	s.dirty = slices.Delete(s.dirty, 0, n)
}
