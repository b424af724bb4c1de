package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/threads/prompt"
	"trunkline/handlers/threads/supervisor"
)

// wakers wake agents: the supervisor with its terminals and commands. The zero value wakes none.
type wakers struct {
	supervisor atomic.Pointer[supervisor.Supervisor]
	runner     *supervisor.Runner // nil: jobs stay queued
	logs       string             // a temporary directory; empty: the logs stay
	stop       chan struct{}
}

// agentLogs is the directory in store.dir with the output of commands.
const agentLogs = "agents"

// start begins to work off jobs, if threads.supervisor_mode and the machine allow it. It looks for
// unread messages in any case.
func (w *wakers) start(t *threadEndpoint) error {
	c := &t.cfg.Threads
	sc := supervisor.Config{Jobs: t.jobs, Interval: c.WorkerPollInterval, Quiet: c.TriggerQuietWindow}
	if c.SupervisorMode != config.SupervisorOff {
		if err := w.open(t, &sc); err != nil {
			return err
		}
	}
	s := supervisor.Start(sc)
	w.supervisor.Store(s)
	w.stop = make(chan struct{})
	go func() {
		for {
			select {
			case <-w.stop:
				return
			case <-t.state.engine.Woken():
				s.Wake()
			}
		}
	}()
	return nil
}

// open completes sc by what wakes agents. Without tmux it leaves it as it is.
func (w *wakers) open(t *threadEndpoint, sc *supervisor.Config) error {
	c := &t.cfg.Threads
	tmux, err := supervisor.NewTmux(supervisor.TmuxConfig{Environ: agentEnviron(os.Environ()), Sessions: c.SupervisorTmuxSessions, Deny: c.SupervisorDenyCommands,
		Quiet: c.TriggerQuietWindow, Parse: parseRuntime})
	if err == nil {
		err = tmux.Available(context.Background())
	}
	switch {
	case err != nil && c.SupervisorMode == config.SupervisorTmux:
		return fmt.Errorf("cannot use threads.supervisor_mode = tmux: %w", err)
	case err != nil:
		t.logger.Info("agents are not woken: jobs stay queued", "reason", err.Error())
		return nil
	}
	logs := filepath.Join(t.cfg.Store.Dir, agentLogs)
	if t.cfg.Store.Mode == config.StoreMemory {
		if logs, err = os.MkdirTemp("", "trunkline-agents-"); err != nil {
			return fmt.Errorf("cannot keep the output of commands: %w", err)
		}
		w.logs = logs
	}
	w.runner, err = supervisor.NewRunner(supervisor.RunnerConfig{Dir: c.SupervisorWorkdir, Environ: agentEnviron(os.Environ()), LogDir: logs})
	if err != nil {
		return fmt.Errorf("cannot run commands for agents: %w", err)
	}
	sc.Deliver, sc.Run, sc.Acked, sc.Parallel = tmux.Deliver, w.runner.Run, t.jobs.Acked, c.WorkerMaxParallelJobs
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

// busy reports whether a person is expected at a runtime.
func (w *wakers) busy(runtime string) bool {
	s := w.supervisor.Load()
	return s != nil && s.HumanTyping(runtime)
}

// close waits for the attempts under way until ctx ends, and ends what runs.
func (w *wakers) close(ctx context.Context) {
	s := w.supervisor.Load()
	if s == nil {
		return
	}
	close(w.stop)
	s.Close(ctx)
	if w.runner != nil {
		w.runner.Close()
	}
	if w.logs != "" {
		_ = os.RemoveAll(w.logs)
	}
}
