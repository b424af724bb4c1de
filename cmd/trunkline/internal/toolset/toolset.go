// Package toolset makes the tools of a tool server: out of its plugins, the built-in tools, and the
// environment names of the protocol (toolhost §4.7, §4.9, §4.10, §6).
//
//	Options ──► Open ──► Set ──► ServerConfig ──► toolhost.New
//	plugins, built-ins        registry, workers
//
// A Set belongs to one server, or to one call of a single-shot mode: its breakers and worker
// processes are its own.
package toolset

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/builtin"
	"trunkline/handlers/toolhost/manifest"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workers"
)

// Options are what the tools are made of.
type Options struct {
	// Plugins are "builtin", manifests, and directories of them.
	Plugins []string
	// Builtins adds every built-in tool that no plugin binds.
	Builtins bool
	// Root is the directory that tools cannot leave, and must exist. Empty: MACHINA_ROOT, else the
	// working directory.
	Root string
	// BreakerThreshold and BreakerCooldown stand over the environment; negative: they do not. A
	// threshold of 0 is one of 1.
	BreakerThreshold int
	BreakerCooldown  time.Duration
	// Events as toolhost.Config.Events; may be nil.
	Events func(toolhost.Event)
}

// Set is the tools, and what they share.
type Set struct {
	Registry *toolhost.Registry
	Env      *builtin.Env
	rooted   bool             // the root was named: it is not just the working directory
	spawner  *workers.Spawner // nil until a tool needs processes
	wrapper  workers.Wrapper
	closers  []func()
	checks   []check
}

// check finds out whether a tool of a manifest can be run.
type check struct {
	aid string
	run func(context.Context) error
}

// checkWithin bounds what Unusable spends: a start must not wait for the hashes of many large
// programs.
const checkWithin = 5 * time.Second

var errDeclared = errors.New("it has no exec, and there is no built-in tool of that AID")

// Unusable returns the tools of manifests that cannot be run, as they are found now, by AID. A hash
// that it has no time for is taken to be the right one.
func (s *Set) Unusable() (list []toolhost.Unusable) {
	ctx, cancel := context.WithTimeout(context.Background(), checkWithin)
	defer cancel()
	for _, c := range s.checks {
		if err := c.run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			list = append(list, toolhost.Unusable{AID: c.aid, Why: err.Error()})
		}
	}
	slices.SortFunc(list, func(a, b toolhost.Unusable) int { return strings.Compare(a.AID, b.AID) })
	return list
}

// Warn logs the tools that cannot be run.
func (s *Set) Warn(log *slog.Logger) {
	for _, u := range s.Unusable() {
		log.Warn("a tool cannot be run", "aid", u.AID, "why", u.Why)
	}
}

// Close ends the worker processes. Sessions must have ended before. It may be called again.
func (s *Set) Close() {
	for _, f := range s.closers {
		f()
	}
	if s.spawner != nil {
		s.spawner.Close()
	}
}

// Open makes the tools. The text of an error is that of the reply (toolhost §2.1), but for a root
// that cannot be used.
func Open(o Options) (*Set, error) {
	entries, builtins, err := manifest.LoadAll(o.Plugins)
	if err != nil {
		return nil, err
	}
	environ := environment{root: o.Root}
	wd, _ := os.Getwd() // only a relative root needs it, and reports its lack
	env, err := builtin.EnvFrom(environ.get, wd)
	if err = cmp.Or(err, environ.bad); err != nil {
		return nil, err
	}
	if info, err := os.Stat(env.Root); o.Root != "" && (err != nil || !info.IsDir()) {
		return nil, errors.New("cannot use root: not a directory: " + o.Root)
	}
	s := &Set{Env: env, rooted: environ.get(rootName) != ""}
	if err := s.wrap(); err != nil {
		return nil, err
	}
	if program, err := s.embedder(&o); err != nil {
		return nil, err
	} else if program != nil {
		env.Embed.Use(program)
	}
	list, err := s.bind(&o, entries, builtins || o.Builtins)
	if err == nil {
		s.Registry, err = toolhost.NewRegistry(list)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// bind gives every entry of the manifests what runs it, and adds the built-ins that are left, if
// all are asked for.
func (s *Set) bind(o *Options, entries []manifest.Entry, all bool) (list []toolhost.Entry, err error) {
	own := make(map[string]builtin.Builtin)
	for _, b := range builtin.Builtins(s.Env) {
		own[b.AID] = b
	}
	bound := make(map[string]bool)
	for _, m := range entries {
		e, ok, err := s.entry(o, &m, own)
		if err != nil {
			return nil, err
		}
		bound[m.AID] = true
		if ok {
			list = append(list, e)
		}
	}
	for _, b := range builtin.Builtins(s.Env) {
		if all && !b.Hidden && !bound[b.AID] {
			list = append(list, toolhost.Entry{Descriptor: b.Descriptor, Tool: b.Tool})
		}
	}
	return list, nil
}

// entry returns the tool of a manifest's entry; ok is false for one that is only declared.
func (s *Set) entry(o *Options, m *manifest.Entry, own map[string]builtin.Builtin) (e toolhost.Entry, ok bool, err error) {
	e = toolhost.Entry{Descriptor: m.Descriptor, Timeout: m.Exec.Timeout}
	if !m.Exec.Kind.External() {
		b, found := own[m.Exec.Builtin]
		if !found {
			if m.Exec.Kind == manifest.Builtin {
				return e, false, manifest.Invalid(m.Path, "no built-in tool is named "+m.Exec.Builtin)
			}
			s.checks = append(s.checks, check{m.AID, func(context.Context) error { return errDeclared }})
			return e, false, nil
		}
		e.Tool, e.Fast, e.Tier = b.Tool, b.Fast, max(e.Tier, b.Tier)
		return e, true, nil
	}
	e.Breaker = tool.NewBreaker(o.breaker(m.AID))
	e.Tool, err = s.worker(o, m)
	return e, err == nil, err
}

func (o *Options) breaker(aid string) tool.BreakerConfig {
	c := tool.BreakerConfig{
		Threshold: number("MACHINA_TOOL_FAIL_THRESHOLD", tool.DefaultThreshold),
		Cooldown:  span("MACHINA_TOOL_COOLDOWN_MS", time.Millisecond, tool.DefaultCooldown),
		Now:       connection.Mono,
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

// worker makes what runs an external tool.
func (s *Set) worker(o *Options, m *manifest.Entry) (tool.Tool, error) {
	x := &m.Exec
	if x.Kind == manifest.Wasm {
		s.checks = append(s.checks, check{m.AID, func(ctx context.Context) error { return workers.CheckModule(ctx, x.Module, x.SHA256) }})
		return s.process(o, m.AID, workers.ProcessConfig{
			Module: x.Module, SHA256: x.SHA256, Stateless: x.Stateless,
			Pool: tool.DefaultPool(),
		}), nil
	}
	t := s.process(o, m.AID, workers.ProcessConfig{
		Command: x.Command, Dir: x.Dir, Env: procgroup.Environ(s.lookup, x.Env), SHA256: x.SHA256,
		Oneshot: x.Oneshot, Stateless: x.Stateless,
		Pool: x.Pool, Limits: x.Limits,
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

// embedder returns what runs the operator's embedding program, nil if there is none (toolhost §11).
// It is one process, which is kept: loading a model takes long, and its limits are those that the
// operator gives it.
func (s *Set) embedder(o *Options) (tool.Tool, error) {
	if s.Env.Embed.Command == "" {
		return nil, nil
	}
	argv, err := s.command("MACHINA_EMBED_CMD", s.Env.Embed.Command)
	if err != nil {
		return nil, err
	}
	t := s.process(o, builtin.EmbedAID, workers.ProcessConfig{Command: argv, Dir: s.Env.Root, Env: procgroup.Environ(s.lookup, nil), Plain: true,
		Pool: tool.Pool{Min: 1, Max: 1, MaxRequests: math.MaxInt}})
	return &guarded{t, tool.NewBreaker(o.breaker(builtin.EmbedAID))}, nil
}

// guarded is a tool with a breaker of its own, for what a server does not know as a tool.
type guarded struct {
	tool.Tool
	breaker *tool.Breaker
}

// Run implements tool.Tool.
func (g *guarded) Run(ctx context.Context, c *tool.Call) tool.Result {
	probe, ok := g.breaker.Allow()
	if !ok {
		return tool.Fail("circuit breaker open for " + c.AID)
	}
	g.breaker.Start(probe)
	r := g.Tool.Run(ctx, c)
	g.breaker.Done(probe, r.Dispatch())
	return r
}
