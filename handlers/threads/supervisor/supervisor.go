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

// Config configures a Supervisor. All but Acked must be set, or Jobs and Interval where Parallel is
// 0.
type Config struct {
	Jobs Jobs
	// Deliver is as Tmux.Deliver, Run as Runner.Run.
	Deliver func(ctx context.Context, a Attempt) Outcome
	Run     func(ctx context.Context, c Command, acked <-chan struct{}) Outcome
	// Acked reports whether the target of a job was heard of since its attempt began. It is called
	// at every interval for each command that runs.
	Acked    func(triggerID string) bool
	Interval time.Duration // between ticks
	Parallel int           // attempts at a time; 0: none is claimed
	Quiet    time.Duration // how long a person who was seen at a runtime is expected there
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
	busy    busy

	// The following belongs to the loop.
	results  chan result
	attempts int
	runs     map[string]chan struct{} // the commands that run, until they are acknowledged
	running  int                      // commands among attempts
}

type result struct {
	job Job
	o   Outcome
}

// Start returns a Supervisor that works. Close must follow.
func Start(cfg Config) *Supervisor {
	s := &Supervisor{cfg: cfg, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		busy:    busy{quiet: cfg.Quiet, most: maxBusy, seen: map[string]time.Time{}},
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

// HumanTyping reports whether a person is expected at a runtime: a delivery found one there less
// than the quiet window ago.
func (s *Supervisor) HumanTyping(runtime string) bool { return s.busy.is(runtime, time.Now()) }

// Close claims no more, and waits for the attempts under way. When ctx ends it interrupts them.
// It may be called again.
func (s *Supervisor) Close(ctx context.Context) {
	s.stop.Do(func() { close(s.closing) })
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	s.cancel()
	<-s.done
}

// loop owns the state of the Supervisor and is the only caller of Jobs.
func (s *Supervisor) loop() {
	defer close(s.done)
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

// claim begins as many attempts as there is room for. One place is kept for a delivery: commands
// run for minutes, and must not hold up what takes a moment.
func (s *Supervisor) claim() {
	room := s.cfg.Parallel - s.attempts
	if room <= 0 {
		return
	}
	runs := max(0, min(room, max(1, s.cfg.Parallel-1)-s.running))
	for _, job := range s.cfg.Jobs.Claim(s.ctx, room, runs) {
		s.begin(job)
	}
}

func (s *Supervisor) begin(job Job) {
	s.attempts++
	if job.Kind == Deliver {
		go func() {
			s.results <- result{job, s.cfg.Deliver(s.ctx, Attempt{job.TriggerID, job.Runtime, job.Envelope, job.Forced})}
		}()
		return
	}
	s.running++
	acked := make(chan struct{})
	s.runs[job.TriggerID] = acked
	go func() { s.results <- result{job, s.cfg.Run(s.ctx, Command{job.TriggerID, job.Argv}, acked)} }()
}

func (s *Supervisor) finish(r result) {
	s.attempts--
	switch {
	case r.job.Kind != Deliver:
		s.running--
		delete(s.runs, r.job.TriggerID)
	case r.o.Code == OperatorBusy:
		s.busy.note(r.job.Runtime, time.Now())
	case r.o.Code == Success:
		s.busy.forget(r.job.Runtime)
	}
	if r.o.Code != Interrupted {
		s.cfg.Jobs.Finished(r.job, r.o)
	}
}
