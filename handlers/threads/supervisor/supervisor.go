// Package supervisor works off the trigger jobs of agent threads (threads §4.9): it pastes prompts
// into panes of tmux, and runs fallback commands. It decides nothing about a job: a Supervisor
// claims attempts from its Jobs, executes them, and reports their outcomes.
//
//	claim ──► Supervisor ──► Tmux.Deliver   a prompt for a live runtime
//	                     └─► Runner.Run     a command that resumes or starts one
//
// A prompt reaches a pane only if tmux lists that pane under exactly the given names, and again
// immediately before the paste. Names of windows and commands are chosen by what runs in panes:
// package supervisor takes them as hostile. The prompt itself is never an argument of tmux.
package supervisor

import (
	"context"
	"sync"
	"time"
)

// Kind is what an attempt of a job does.
type Kind uint8

// The kinds of attempts.
const (
	Deliver Kind = iota // a prompt for a live runtime
	Resume              // a command that resumes a session
	Spawn               // a command that starts one
)

// Job is a claimed attempt with all that it needs.
type Job struct {
	TriggerID string
	Kind      Kind
	Runtime   string   // of Deliver
	Envelope  []byte   // of Deliver
	Forced    bool     // of Deliver
	Argv      []string // of Resume and Spawn
}

// Jobs is the state machine of the jobs. Its methods are called by one goroutine, one at a time.
type Jobs interface {
	// Claim returns attempts that are due, at most attempts of them and at most runs of commands.
	// What it returns is begun at once.
	Claim(ctx context.Context, attempts, runs int) []Job
	// Finished reports the outcome of a claimed attempt. It is not called for an attempt that Close
	// interrupts.
	Finished(job Job, o Outcome)
	// Tick is called at the start and at every interval, before Claim: for leases, unread messages.
	Tick(now time.Time)
}

// Config configures a Supervisor. All but Acked must be set, or Jobs, Interval and Machine where
// that has no room.
type Config struct {
	Jobs Jobs
	// Deliver is as Tmux.Deliver, Run as Runner.Run.
	Deliver func(ctx context.Context, a Attempt) Outcome
	Run     func(ctx context.Context, c Command, acked <-chan struct{}) Outcome
	// Acked reports whether the target of a job was heard of since its attempt began. It is called
	// at every interval for each command that runs.
	Acked    func(triggerID string) bool
	Interval time.Duration // between ticks
	// Machine bounds the attempts of this Supervisor and of all others that have it.
	Machine *Machine
}

// Supervisor executes the attempts of jobs.
type Supervisor struct {
	cfg     Config
	wake    chan struct{} // has room for one
	closing chan struct{}
	done    chan struct{} // closed when the loop has ended
	ctx     context.Context
	cancel  context.CancelFunc // interrupts the attempts
	stop    sync.Once

	// The following belongs to the loop.
	results  chan result
	attempts int
	runs     map[string]chan struct{} // the commands that run, until they are acknowledged
}

type result struct {
	job Job
	o   Outcome
}

// Start returns a Supervisor that works. Close must follow.
func Start(cfg Config) *Supervisor {
	s := &Supervisor{cfg: cfg, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		results: make(chan result), runs: map[string]chan struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.loop()
	return s
}

// Wake has the Supervisor claim jobs soon. It never blocks.
func (s *Supervisor) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // it will claim anyway
	}
}

// Drain claims no more, and waits for the attempts under way until ctx ends. Close must follow.
func (s *Supervisor) Drain(ctx context.Context) {
	s.stop.Do(func() { close(s.closing) })
	select {
	case <-s.done:
	case <-ctx.Done():
	}
}

// Close claims no more, and waits for the attempts under way. When ctx ends it interrupts them.
// It may be called again.
func (s *Supervisor) Close(ctx context.Context) {
	s.Drain(ctx)
	s.cancel()
	<-s.done
}

// loop owns the state of the Supervisor and is the only caller of Jobs.
func (s *Supervisor) loop() {
	defer close(s.done)
	defer s.cfg.Machine.leave(s)
	ticker := time.NewTicker(s.cfg.Interval)
	defer ticker.Stop()
	s.cfg.Jobs.Tick(time.Now())
	closing := s.closing // nil once it is closed
	for {
		select {
		case <-s.closing:
			closing = nil
		default:
		}
		switch {
		case closing != nil:
			s.claim()
		case s.attempts == 0:
			return
		}
		select {
		case now := <-ticker.C:
			s.tick(now, closing != nil)
		case <-s.wake:
		case r := <-s.results:
			s.finish(r)
		case <-closing:
		}
	}
}

func (s *Supervisor) tick(now time.Time, open bool) {
	if open {
		s.cfg.Jobs.Tick(now)
	}
	for id, acked := range s.runs {
		if s.cfg.Acked != nil && s.cfg.Acked(id) {
			close(acked)
			delete(s.runs, id)
		}
	}
}

// claim begins as many attempts as there is room for.
func (s *Supervisor) claim() {
	room, runs := s.cfg.Machine.take(s)
	if room == 0 {
		return
	}
	for _, job := range s.cfg.Jobs.Claim(s.ctx, room, runs) {
		room, runs = room-1, runs-job.commands()
		s.begin(job)
	}
	s.cfg.Machine.settle(s, room, runs)
}

// commands is 1 for an attempt that runs a command.
func (j *Job) commands() int {
	if j.Kind == Deliver {
		return 0
	}
	return 1
}

func (s *Supervisor) begin(job Job) {
	s.attempts++
	if job.Kind == Deliver {
		go func() {
			s.results <- result{job, s.cfg.Deliver(s.ctx, Attempt{job.TriggerID, job.Runtime, job.Envelope, job.Forced})}
		}()
		return
	}
	acked := make(chan struct{})
	s.runs[job.TriggerID] = acked
	go func() { s.results <- result{job, s.cfg.Run(s.ctx, Command{job.TriggerID, job.Argv}, acked)} }()
}

func (s *Supervisor) finish(r result) {
	s.attempts--
	m := s.cfg.Machine
	m.finish(s, r.job.commands())
	switch {
	case r.job.Kind != Deliver:
		delete(s.runs, r.job.TriggerID)
	case r.o.Code == OperatorBusy:
		m.busy.note(r.job.Runtime, time.Now())
	case r.o.Code == Success:
		m.busy.forget(r.job.Runtime)
	}
	if r.o.Code != Interrupted {
		s.cfg.Jobs.Finished(r.job, r.o)
	}
}
