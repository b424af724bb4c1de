package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/threadstore/prompt"
	"trunkline/handlers/threads/supervisor"
)

// waking is what wakes agents on this machine, for all partitions together.
type waking struct {
	*supervisor.Machine
	tmux *supervisor.Tmux // nil: jobs stay queued
}

// openWaking returns what threads.supervisor_mode and the machine allow.
func openWaking(c *config.Threads, o Options) (w waking, err error) {
	parallel := 0
	if c.SupervisorMode != config.SupervisorOff {
		w.tmux, err = supervisor.NewTmux(supervisor.TmuxConfig{Environ: agentEnviron(os.Environ()),
			Sessions: c.SupervisorTmuxSessions, Deny: c.SupervisorDenyCommands, Allow: c.SupervisorRuntimes,
			Quiet: c.TriggerQuietWindow, Parse: parseRuntime})
		if err == nil {
			err = w.tmux.Available(context.Background())
		}
		switch {
		case err == nil:
			parallel = c.WorkerMaxParallelJobs
		case c.SupervisorMode == config.SupervisorTmux:
			return w, fmt.Errorf("cannot use threads.supervisor_mode = tmux: %w", err)
		default:
			o.Logger.Info("agents are not woken: jobs stay queued", "reason", err.Error())
			w.tmux = nil
		}
	}
	w.Machine = supervisor.NewMachine(parallel, c.TriggerQuietWindow)
	return w, nil
}

// wakers wake the agents of a partition: the supervisor with its terminals and commands.
type wakers struct {
	mu         sync.Mutex             // of what start sets
	drained    bool                   // nothing is started any more, and close need not wait
	supervisor *supervisor.Supervisor // nil before start
	runner     *supervisor.Runner     // nil: jobs stay queued
	logs       string                 // a temporary directory; empty: the logs stay
	stop       chan struct{}
}

// agentLogs is the directory in store.dir with the output of commands.
const agentLogs = "agents"

// start begins to work off jobs, where they can be. It looks for unread messages in any case.
func (w *wakers) start(t *threadEndpoint) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drained {
		return nil
	}
	sc := supervisor.Config{Jobs: t.jobs, Interval: t.cfg.Threads.WorkerPollInterval, Machine: t.shared.Machine}
	if t.shared.tmux != nil {
		if err := w.open(t, &sc); err != nil {
			return err
		}
	}
	s := supervisor.Start(sc)
	w.supervisor, w.stop = s, make(chan struct{})
	go func() {
		for {
			select {
			case <-w.stop:
				return
			case <-t.engine.Woken():
				s.Wake()
			}
		}
	}()
	return nil
}

// open completes sc by what wakes agents.
func (w *wakers) open(t *threadEndpoint, sc *supervisor.Config) (err error) {
	logs := filepath.Join(t.cfg.Store.Dir, agentLogs)
	if t.cfg.Store.Mode == config.StoreMemory {
		if logs, err = os.MkdirTemp("", "trunkline-agents-"); err != nil {
			return fmt.Errorf("cannot keep the output of commands: %w", err)
		}
		w.logs = logs
	}
	w.runner, err = supervisor.NewRunner(supervisor.RunnerConfig{Dir: t.cfg.Threads.SupervisorWorkdir, Environ: agentEnviron(os.Environ()), LogDir: logs})
	if err != nil {
		return fmt.Errorf("cannot run commands for agents: %w", err)
	}
	sc.Deliver, sc.Run, sc.Acked = t.shared.tmux.Deliver, w.runner.Run, t.jobs.Acked
	timeWakes(sc, t.recorder)
	return nil
}

// ownPrefixes begin the names of variables that are meant for the server, and may hold its secrets.
var ownPrefixes = []string{"TRUNKLINE_", "MACHINA_", "AUTH_", "THREADS_TOKEN"}

// agentEnviron is the environment of what wakes agents: the server's own, without its settings.
func agentEnviron(environ []string) (kept []string) {
	for _, entry := range environ {
		if !slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(entry, p) }) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func parseRuntime(runtime string) (session, window string, pane int, ok bool) {
	t, ok := prompt.ParseRuntime(runtime)
	return t.Session, t.Window, t.Pane, ok
}

// drain claims no more jobs, waits until ctx ends for the commands that run, and sends SIGTERM to
// those that are left. Requests are served meanwhile: agents report what they have done.
func (w *wakers) drain(ctx context.Context) {
	w.mu.Lock()
	w.drained = true
	s, r := w.supervisor, w.runner
	w.mu.Unlock()
	if s != nil {
		s.Drain(ctx)
	}
	if r != nil {
		r.Drain(ctx)
	}
}

// close waits for the attempts under way until ctx ends, and ends what runs.
func (w *wakers) close(ctx context.Context) {
	w.mu.Lock()
	started, drained := w.supervisor != nil, w.drained
	w.mu.Unlock()
	if !started {
		return
	}
	if drained {
		over, cancel := context.WithCancel(ctx)
		cancel()
		ctx = over
	}
	close(w.stop)
	w.supervisor.Close(ctx)
	if w.runner != nil {
		w.runner.Close()
	}
	if w.logs != "" {
		_ = os.RemoveAll(w.logs)
	}
}
