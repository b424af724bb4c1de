package toolset

import (
	"context"
	"time"

	"trunkline/engine/link"
	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/manifest"
	"trunkline/handlers/toolhost/procgroup"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workers"
)

func (o *Options) breaker(aid string) tool.BreakerConfig {
	c := tool.BreakerConfig{
		Threshold: number("MACHINA_TOOL_FAIL_THRESHOLD", tool.DefaultThreshold),
		Cooldown:  span("MACHINA_TOOL_COOLDOWN_MS", time.Millisecond, tool.DefaultCooldown),
		Now:       link.Mono,
	}
	if o.BreakerThreshold >= 0 {
		c.Threshold = o.BreakerThreshold
	}
	if o.BreakerCooldown >= 0 {
		c.Cooldown = o.BreakerCooldown
	}
	if o.Events != nil {
		c.Changed = func(st tool.BreakerState, failures int) {
			o.Events(toolhost.BreakerEvent(aid, st, failures))
		}
	}
	return c
}

const mebibyte = 1 << 20

// worker makes what runs an external tool.
func (s *Set) worker(o *Options, m *manifest.Entry) (tool.Tool, error) {
	x := &m.Exec
	if x.Kind == manifest.Wasm {
		s.checks = append(s.checks, check{m.AID, func(ctx context.Context) error { return workers.CheckModule(ctx, x.Module, x.SHA256) }})
		return s.process(o, m.AID, workers.ProcessConfig{
			Module: x.Module, SHA256: x.SHA256, Stateless: x.Stateless,
			Pool: workers.PoolConfig(manifest.DefaultPool()),
		}), nil
	}
	t := s.process(o, m.AID, workers.ProcessConfig{
		Command: x.Command, Dir: x.Dir, Env: procgroup.Environ(s.lookup, x.Env), SHA256: x.SHA256,
		Oneshot: x.Oneshot, Stateless: x.Stateless,
		Pool: workers.PoolConfig(x.Pool),
		Limits: workers.Limits{AddressSpace: int64(x.Limits.ASMB) * mebibyte, CPU: int64(x.Limits.CPUS),
			FileSize: int64(x.Limits.FSizeMB) * mebibyte, OpenFiles: int64(x.Limits.OpenFile)},
	})
	s.checks = append(s.checks, check{m.AID, t.Check})
	return t, nil
}

// process makes a tool of processes, known to events as aid.
func (s *Set) process(o *Options, aid string, c workers.ProcessConfig) *workers.Process {
	if s.spawner == nil {
		s.spawner = workers.NewSpawner()
	}
	c.Spawner, c.Wrapper, c.MaxProcesses = s.spawner, s.wrapper, max(number(maxProcessesName, 0), 0)
	if o.Events != nil {
		c.Started = func(pid int) { o.Events(toolhost.WorkerStarted(aid, pid)) }
		c.Exited = func(pid, code int, reason string) { o.Events(toolhost.WorkerExited(aid, pid, code, reason)) }
	}
	t := workers.NewProcess(c)
	s.closers = append(s.closers, func() { _ = t.Close() })
	return t
}
