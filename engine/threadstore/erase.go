package threadstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
)

// What stands in place of what was erased. The audit log keeps the operations of erasures.
const (
	erasedText     = "[erased]"
	erasedName     = "erased"
	erasedPayload  = `{"erased":true}`
	eraseOperation = "admin.erase_"
)

const (
	// maxErasures bounds the erasures that are remembered. One more takes the place of the oldest
	// that is purged; where none is, it is refused.
	maxErasures = 1000
	// eraseBytes is about how many bytes of rows are rewritten at a time.
	eraseBytes = 4 << 20
)

// erasures are those that are not purged, and the latest others.
type erasures struct {
	wake    chan struct{}
	walking sync.Mutex // held while the state of all threads is read, or changed by one record
	merging sync.Mutex // held while files of rows are rewritten

	mu     sync.Mutex
	list   []erasure // by number
	failed error     // of the last attempt to purge
}

func (er erasure) purged() bool { return er.Purged > 0 }

// states returns the erasures, with pending those that are not purged.
func (s *erasures) states(pending bool) []erasure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), func(er erasure) bool { return pending && er.purged() })
}

// put takes over the state of an erasure, by the record at an index.
func (s *erasures) put(er erasure, index journal.Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	er.Audit, er.Index = auditEvent{}, index
	if i := slices.IndexFunc(s.list, func(other erasure) bool { return other.Number == er.Number }); i >= 0 {
		if index >= s.list[i].Index {
			s.list[i] = er
		}
		return
	}
	if i := slices.IndexFunc(s.list, erasure.purged); i >= 0 && len(s.list) >= maxErasures {
		s.list = slices.Delete(s.list, i, i+1)
	}
	s.list = append(s.list, er)
}

// Erasure is an erasure as operators see it.
type Erasure struct {
	Number    uint64    `json:"erasure"`
	At        time.Time `json:"requested_at"`
	Workspace string    `json:"workspace_id"`
	Thread    string    `json:"thread_id,omitempty"`
	Agent     string    `json:"agent_id,omitempty"`
	Reason    string    `json:"reason"`
	// State is "pending" until no file of this node has the text any more, then "purged". Error is
	// why the last attempt to get there failed.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

// Erasures returns the erasures that are known, oldest first.
func (e *Engine) Erasures() (list []Erasure, err error) {
	merged, err := e.mergedRows()
	now, states := e.cfg.Now(), e.erasures.states(false)
	e.erasures.mu.Lock()
	defer e.erasures.mu.Unlock()
	for _, er := range states {
		shown := Erasure{
			er.Number, time.UnixMilli(er.At).UTC(), er.Workspace, er.ThreadID, er.Agent, er.Reason, "pending", "",
		}
		if er.purged() && er.Number <= merged && (e.archive.to == nil || apart(now, er.Purged) >= purgeSettle) {
			shown.State = "purged"
		} else if e.erasures.failed != nil {
			shown.Error = e.erasures.failed.Error()
		}
		list = append(list, shown)
	}
	return list, err
}

// EraseThread erases the text of a thread of any workspace (threads §4.12), which is closed. No
// reader sees the text when it returns.
func (e *Engine) EraseThread(id []byte, reason string, now int64) (Erasure, Refusal) {
	t := e.find(id)
	if t == nil {
		return Erasure{}, Refusal{Code: NoThread}
	}
	return e.erase(&erasure{At: now, Workspace: t.made.Workspace, Thread: t.made.Number, ThreadID: t.made.ID, Reason: reason})
}

// EraseAgent erases the texts of an agent in all threads of its workspace, its session and its
// cursors (threads §4.12). Its messages get another sender. It reads all messages; nothing is
// stored meanwhile.
func (e *Engine) EraseAgent(workspace, agent, reason string, now int64) (Erasure, Refusal) {
	return e.erase(&erasure{At: now, Workspace: workspace, Agent: agent, Reason: reason})
}

func (e *Engine) erase(er *erasure) (out Erasure, _ Refusal) {
	e.erasures.walking.Lock()
	defer e.erasures.walking.Unlock()
	e.storing.Lock() // the rows are those that followers have when they come to the record
	defer e.storing.Unlock()
	list := e.erasures.states(false)
	if er.Number = 1; len(list) > 0 {
		er.Number += list[len(list)-1].Number
	}
	switch {
	case e.refuses():
		return out, Refusal{Code: NotStored}
	case len(list) >= maxErasures && !slices.ContainsFunc(list, erasure.purged):
		return out, Refusal{Code: TooMany}
	}
	e.dropSchedules(er)
	index := e.eraseState(er, 0)
	e.dropSchedules(er) // those that were made meanwhile
	err := e.store.Barrier(e.ctx)
	if err == nil {
		err = e.storeLocked(index)
	}
	if err == nil {
		err = e.redact(er)
	}
	select {
	case e.erasures.wake <- struct{}{}:
	default:
	}
	shown, bad := e.Erasures()
	if err = errors.Join(err, bad); err != nil {
		return out, Refusal{Code: Failed, Err: err}
	}
	return shown[len(shown)-1], Refusal{}
}

// recordErasure records the state of an erasure, with an event of the audit log.
func (e *Engine) recordErasure(er *erasure) journal.Index {
	a := Actor{Workspace: er.Workspace, Role: "operator"}
	er.Audit = a.audit(eraseOperation+"thread", er.ThreadID, max(er.At, er.Purged))
	if er.Thread == 0 {
		er.Audit.Operation, er.Audit.ResourceType, er.Audit.Resource = eraseOperation+"agent", "agent", er.Agent
	}
	er.Audit.Payload = jsonx.Build(nil).Text("reason", er.Reason).Bool("purged", er.purged()).End()
	index := e.recordAudited(opErasure, er, &er.Audit)
	e.erasures.put(*er, index)
	return index
}

// eraseState erases what is in memory but for messages, and records it; index is that of the record
// in a replay. Open jobs end.
func (e *Engine) eraseState(er *erasure, index journal.Index) journal.Index {
	t, replayed := e.numbered(er.Thread), index > 0
	if t != nil {
		e.numbers.Lock()
		defer e.numbers.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	e.jobs.mu.Lock()
	e.store.Begin() // all of it or nothing
	e.sessions.mu.Lock()
	if !replayed {
		index = e.recordErasure(er)
	}
	if t != nil && index >= t.index {
		e.eraseHead(t, er.At)
		t.index = index
	}
	e.sessions.forget(agentKey{er.Workspace, er.Agent}, index) // none has no name
	e.sessions.mu.Unlock()
	all := slices.Concat(append(slices.Collect(maps.Values(e.jobs.awaited)), slices.Collect(maps.Values(e.jobs.open)),
		slices.Collect(maps.Values(e.jobs.keys)))...)
	for _, j := range all {
		if j.Index > index || !er.ofJob(&j.jobState) {
			continue
		}
		e.release(j) // a sign would record it once more
		if key := hashCreation(j.Workspace, j.Caller, []byte(j.Key)); e.jobs.keys[key] == j {
			delete(e.jobs.keys, key)
		}
		if er.redactJob(&j.jobState); !replayed && !j.Final {
			j.Status, j.Final, j.Code, j.CompletedAt = uint8(JobFailed), true, codeCancelled, er.At
			j.lease, j.Started = 0, false
			e.saveJob(j, er.At)
		}
	}
	e.store.End()
	e.jobs.mu.Unlock()
	if t == nil {
		_ = e.eachThread(func(t *thread) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			if c := t.cursors[er.Agent]; c != nil && t.made.Workspace == er.Workspace && c.index <= index {
				delete(t.cursors, er.Agent)
			}
			return nil
		})
	}
	return index
}

// eraseHead erases the title and the key of a thread and closes it. Caller holds numbers and t.mu.
func (e *Engine) eraseHead(t *thread, at int64) {
	if hash := hashCreation(t.made.Workspace, t.made.Creator, []byte(t.made.Key)); e.numbers.made[hash] == t {
		delete(e.numbers.made, hash)
	}
	t.made.Title, t.made.Creator, t.made.Key, t.made.Digest = erasedText, "", "", nil
	t.status, t.updated = Closed, max(at, t.updated)
}

// forget removes the session of an agent, unless it is later than an index. Caller holds mu.
func (s *sessions) forget(key agentKey, index journal.Index) {
	if sess := s.agents[key]; sess != nil && sess.index <= index {
		delete(s.agents, key)
		delete(s.holders, agentKey{key.workspace, sess.Session})
		s.dirty = slices.DeleteFunc(s.dirty, func(other *session) bool { return other == sess })
	}
}

// erase puts back an erasure, or that it is purged.
func (r *replay) erase(er *erasure, index journal.Index) error {
	r.event(&er.Audit, index)
	r.e.erasures.put(*er, index)
	if er.purged() {
		return nil
	}
	r.e.eraseState(er, index)
	if err := r.store(index); err != nil {
		return err
	}
	r.e.storing.Lock()
	defer r.e.storing.Unlock()
	return r.e.redact(er)
}

// redact rewrites the rows that er erases, and drops the messages of their threads from memory.
// Caller holds storing; what is before the record of er is stored, and nothing else.
func (e *Engine) redact(er *erasure) error {
	stored := e.stored.Load()
	for ranges := er.ranges(); len(ranges) > 0; ranges = ranges[2:] {
		for next := ranges[0]; next != nil; {
			var all, rows [][]byte
			var err error
			all, next, err = e.someRows(next, ranges[1], eraseBytes)
			for i := 0; i < len(all) && err == nil; i += 2 {
				var row []byte
				if row, err = e.redactRow(er, all[i], all[i+1]); row != nil {
					rows = append(rows, all[i], row)
				}
			}
			if err == nil && len(rows) > 0 {
				err = e.disk.Put(rows...)
			}
			if err != nil {
				return err
			}
			for i := 0; i < len(rows) && rows[i][0] == rowMessage; i += 2 {
				t := e.numbered(binary.BigEndian.Uint64(rows[i][1:]))
				t.mu.Lock()
				t.forget(func(r *ref) bool { return r.index <= stored })
				t.mu.Unlock()
			}
		}
	}
	return nil
}

// ranges returns where the rows are that er may change, from and to before in turn.
func (er *erasure) ranges() [][]byte {
	ranges := [][]byte{{rowJob}, {rowJob + 1}, {rowMessage}, {rowMessage + 1}}
	if n := er.Thread; n > 0 {
		ranges = [][]byte{
			appendJobKey(nil, n, 0), appendJobKey(nil, n+1, 0),
			appendMessageKey(nil, n, 0), appendMessageKey(nil, n+1, 0),
		}
	}
	return append(ranges, appendAuditKey(nil, er.Workspace, 0), appendAuditKey(nil, er.Workspace, ^uint64(0)))
}

// redactRow returns what a row becomes, nil where it stays.
func (e *Engine) redactRow(er *erasure, key, value []byte) (row []byte, err error) {
	switch key[0] {
	case rowAudit:
		var ev auditEvent
		err := unmarshal(&ev, value)
		of := er.Thread > 0 && ev.Thread == er.ThreadID || er.Thread == 0 && ev.Actor == er.Agent
		if err != nil || !of || len(ev.Payload) == 0 || strings.HasPrefix(ev.Operation, eraseOperation) {
			return nil, err
		}
		ev.Payload = []byte(erasedPayload)
		return ev.MarshalMsg(nil)
	case rowJob:
		var s jobState
		if err := unmarshal(&s, value); err != nil || !er.ofJob(&s) {
			return nil, err
		}
		er.redactJob(&s)
		return s.MarshalMsg(nil)
	}
	if t := e.numbered(binary.BigEndian.Uint64(key[1:])); t == nil || t.made.Workspace != er.Workspace {
		return nil, nil
	}
	_, run, _, err := parseRun(key, value, &e.storer.work)
	var out []byte
	changed := false
	for len(run) > 0 && err == nil {
		var m message
		row, run, _ = nextInRun(run)
		if m, err = parseRow(row); er.Thread > 0 && !m.erased || er.Thread == 0 && string(m.sender) == er.Agent {
			a := Actor{Agent: er.name(string(m.sender)), Session: erasedName}
			row = appendRow(nil, &a, &Post{Kind: m.kind, Body: []byte(erasedText)}, nil, &m.id, m.created)
			row[1] |= rowErased
			changed = true
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(row))), row...)
	}
	if !changed || err != nil {
		return nil, err
	}
	return appendRun(nil, out, new([]byte)), nil
}

// ofJob reports whether er erases the text of a job.
func (er *erasure) ofJob(s *jobState) bool {
	return er.Thread == s.Thread || er.Thread == 0 && s.Workspace == er.Workspace && (s.Caller == er.Agent || s.Target == er.Agent)
}

func (er *erasure) redactJob(s *jobState) {
	s.Reason, s.Prompt, s.Key, s.Digest, s.TargetSession = erasedText, "", "", nil, ""
	s.Caller, s.Target = er.name(s.Caller), er.name(s.Target)
}

// name returns the name that an agent has afterwards; that of the erased one is stable in its
// workspace.
func (er *erasure) name(agent string) string {
	if er.Thread > 0 || agent != er.Agent {
		return agent
	}
	sum := sha256.Sum256([]byte(er.Workspace + "\x00" + agent))
	return erasedName + ":" + hex.EncodeToString(sum[:4])
}
