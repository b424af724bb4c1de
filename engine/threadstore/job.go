package threadstore

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"trunkline/engine/journal"
)

const triggerPrefix = "trg_"

// JobStatus is where a trigger job is (threads §5.4).
type JobStatus uint8

// The states of jobs.
const (
	Queued JobStatus = iota
	Triggering
	Deferred
	Delivered
	TimedOut
	JobFailed
	FallbackResume
	FallbackSpawn
)

var jobNames = [...]string{"queued", "triggering", "deferred", "delivered", "timeout", "failed", "fallback_resume", "fallback_spawn"}

// String returns the name of s in the protocol.
func (s JobStatus) String() string { return jobNames[s] }

// Codes of attempts (threads §4.9, §5.4).
const (
	codeBusy         = "OPERATOR_BUSY"
	CodeDeferTimeout = "DEFER_TIMEOUT"
	CodeBadCommand   = "FALLBACK_BAD_COMMAND"
	CodeRateLimited  = "TRIGGER_RATE_LIMITED"
	codeNotFound     = "TARGET_NOT_FOUND"
	codePaneDead     = "PANE_DEAD"
	codeSendKeys     = "SEND_KEYS_ERROR"
	codeOffline      = "RUNTIME_OFFLINE"
	codeNoRuntime    = "RUNTIME_NOT_FOUND"
	CodeUnmanaged    = "RUNTIME_UNMANAGED"
	codeNoFallback   = "FALLBACK_DISABLED"
	codeSpawnFailed  = "FALLBACK_SPAWN_FAILED"
	codeResumeFailed = "FALLBACK_RESUME_FAILED"
	codeClosed       = "THREAD_CLOSED"
	codeAutoBlocked  = "THREAD_AUTO_BLOCKED"
	codeInterrupted  = "INTERRUPTED"
	codeCancelled    = "CANCELLED"
)

// retryable reports whether an attempt that ended with a code may be repeated.
func retryable(code string) bool {
	return code == codeNotFound || code == codePaneDead || code == codeSendKeys || code == codeOffline
}

// TriggerConfig is how jobs are worked off (threads §6). Times are in milliseconds.
type TriggerConfig struct {
	MaxRetries   uint32 // attempts beyond the first
	MaxResumes   uint32 // runs of a resume command
	Recheck      int64  // after a deferral
	MaxDefer     int64  // from the creation
	PerMinute    int    // deliveries to one target in one thread
	StaleAfter   int64  // a session without a heartbeat
	AckTimeout   int64  // a delivery without a sign of its target counts as unacknowledged
	NoFallback   bool
	LoopFailures uint32 // failures in a row that block a thread
	LoopSame     uint32 // the same, with one code
	// Unread is what is done for participants with unread messages (threads §5.6).
	Unread UnreadMode
	// MaxJobs bounds the jobs that are not final.
	MaxJobs int
}

// DefaultTriggers are the defaults of threads §6.
var DefaultTriggers = TriggerConfig{MaxRetries: 2, MaxResumes: 2, Recheck: 5_000, MaxDefer: 60_000, PerMinute: 10,
	StaleAfter: 12 * 3600_000, AckTimeout: 8_000, LoopFailures: 20, LoopSame: 3, MaxJobs: 10_000}

// Times of jobs in milliseconds.
const (
	lease          = 60_000
	retryBase      = 2_000
	retryMost      = 60_000
	resumeWindow   = 15 * 60_000 // in which maxResumeFailures of a target stop resuming
	deliveryWindow = 60_000
)

const maxResumeFailures = 3

// job is one that is not final.
type job struct {
	jobState
	thread *thread
	lease  int64 // until when an attempt is under way in this process; 0: none is
	awaits bool  // a sign of the target is looked for
	signal bool  // it has come since the attempt began
	late   bool  // it has not come in time
}

// jobs are the trigger jobs. Final ones are rows.
type jobs struct {
	mu       sync.Mutex
	last     uint64
	open     map[string]*job     // by identifier
	keys     map[keyHash]*job    // by idempotency key; final ones too, until they are stored
	ended    []*job              // final ones, in the order of their ends
	awaited  map[agentKey][]*job // by the target whose sign is looked for
	awaiting atomic.Int64        // how many those are
	unacked  uint64              // deliveries without a sign in time
	recent   map[recentKey]*recentTarget
	wake     chan struct{} // has one element when there is a new job
}

// recentKey names a target for the limits that look back; thread is 0 for the failures to resume.
type recentKey struct {
	thread uint64
	agentKey
}

// recentTarget is the times of the latest deliveries, or failures.
type recentTarget struct{ times []int64 }

// maxRecent bounds the targets that are looked back at: those without a recent time are dropped.
const maxRecent = 65_536

func (j *jobs) init() {
	j.awaited = map[agentKey][]*job{}
	j.open, j.keys, j.recent = map[string]*job{}, map[keyHash]*job{}, map[recentKey]*recentTarget{}
	j.wake = make(chan struct{}, 1)
}

// within returns the times of a target that are younger than window, oldest first. Caller holds mu.
func (j *jobs) within(k recentKey, window, now int64) []int64 {
	r := j.recent[k]
	if r == nil {
		return nil
	}
	n := 0
	for n < len(r.times) && apart(r.times[n], now) >= window {
		n++
	}
	if r.times = append(r.times[:0], r.times[n:]...); len(r.times) == 0 {
		delete(j.recent, k)
	}
	return r.times
}

// note adds a time of a target, of which it keeps as many as a limit looks at. Caller holds mu.
func (j *jobs) note(k recentKey, keep int, now int64) {
	if keep == 0 {
		return // the limit is off
	}
	r := j.recent[k]
	if r == nil {
		if len(j.recent) >= maxRecent {
			for old, t := range j.recent {
				if apart(t.times[len(t.times)-1], now) >= resumeWindow {
					delete(j.recent, old)
				}
			}
			if len(j.recent) >= maxRecent {
				return // the limit is not kept for more targets than that
			}
		}
		r = &recentTarget{}
		j.recent[k] = r
	}
	if r.times = append(r.times, now); len(r.times) > keep {
		r.times = append(r.times[:0], r.times[1:]...)
	}
}

// Woken returns a channel that has an element after a job was added.
func (e *Engine) Woken() <-chan struct{} { return e.jobs.wake }

// saveJob records the state of j, with its row. Caller holds jobs.mu, and thread.mu where the state
// is final.
func (e *Engine) saveJob(j *job, now int64) journal.Index {
	j.UpdatedAt = now
	e.hot.mu.Lock()
	index := e.append(opJob, &j.jobState)
	e.addJob(&e.hot, &j.jobState, index)
	e.hot.mu.Unlock()
	j.Index = index
	j.Audit = auditEvent{}
	e.placeJob(j)
	return index
}

// addJob adds the rows of a job to h. Caller holds the lock of h.
func (e *Engine) addJob(h *hot, s *jobState, index journal.Index) {
	if s.Audit.Operation != "" {
		e.addEvent(h, &s.Audit, index)
	}
	row := appendJobKey(nil, s.Thread, s.Number)
	key := len(row)
	row, _ = s.MarshalMsg(row) // it does not fail
	h.add(row, entry{index: index, key: uint32(key)})
	if s.Key != "" {
		hash := hashCreation(s.Workspace, s.Caller, []byte(s.Key))
		row = append(append(row[:0], rowJobKey), hash[:]...)
		key = len(row)
		row = binary.BigEndian.AppendUint64(appendJobKey(row, s.Thread, s.Number), uint64(s.UpdatedAt))
		h.add(row, entry{index: index, key: uint32(key)})
	}
}

// placeJob puts a job into the tables, or takes it out if it is final. Caller holds jobs.mu.
func (e *Engine) placeJob(j *job) {
	e.jobs.last = max(e.jobs.last, j.Number)
	hash := hashCreation(j.Workspace, j.Caller, []byte(j.Key))
	if j.Key != "" {
		e.jobs.keys[hash] = j
	}
	if !j.Final {
		e.jobs.open[j.ID] = j
		return
	}
	if delete(e.jobs.open, j.ID); j.Key != "" {
		e.jobs.ended = append(e.jobs.ended, j)
	}
}

// forgetEnded drops final jobs that are stored. Caller holds jobs.mu.
func (e *Engine) forgetEnded() {
	js := &e.jobs
	stored := e.stored.Load()
	n := 0
	for ; n < len(js.ended) && js.ended[n].Index <= stored; n++ {
		j := js.ended[n]
		if hash := hashCreation(j.Workspace, j.Caller, []byte(j.Key)); js.keys[hash] == j {
			delete(js.keys, hash)
		}
	}
	js.ended = slices.Delete(js.ended, 0, n)
}
