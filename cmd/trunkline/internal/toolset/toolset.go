// Package toolset makes the tools of a tool server: out of its plugins, the built-in tools, and the environment names of the protocol
// (toolhost §4.7, §4.9, §4.10, §6).
package toolset

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"trunkline/engine/link"
	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/manifest"
	"trunkline/handlers/toolhost/selector"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/tools"
	"trunkline/handlers/toolhost/workers"
)

// Options say what the tools are made of.
type Options struct {
	// Plugins are "builtin", manifests, and directories of them.
	Plugins []string
	// Builtins adds every built-in tool that no plugin binds.
	Builtins bool
	// Root is the directory that tools cannot leave. Empty: MACHINA_ROOT, else the working directory.
	Root string
	// BreakerThreshold and BreakerCooldown stand over the environment; negative: they do not.
	BreakerThreshold int
	BreakerCooldown  time.Duration
	// Events as toolhost.Config.Events; may be nil.
	Events func(toolhost.Event)
}

// Set is the tools, and what they share.
type Set struct {
	Registry *toolhost.Registry
	Env      *tools.Env
	spawner  *workers.Spawner // nil until a tool needs processes
	closers  []func()
}

// Close ends the worker processes. Sessions must have ended before.
func (s *Set) Close() {
	for _, f := range s.closers {
		f()
	}
	if s.spawner != nil {
		s.spawner.Close()
	}
}

// Root returns the directory that Options name.
func (o *Options) root() (getenv func(string) string, wd string, err error) {
	if wd, err = os.Getwd(); err != nil {
		return nil, "", err
	}
	if o.Root == "" {
		return os.Getenv, wd, nil
	}
	return func(name string) string {
		if name == "MACHINA_ROOT" {
			return o.Root
		}
		return os.Getenv(name)
	}, wd, nil
}

// Open makes the tools. The text of an error is that of the reply (toolhost §2.1), but for a root that is no directory.
func Open(o Options) (*Set, error) {
	getenv, wd, err := o.root()
	if err != nil {
		return nil, err
	}
	entries, builtins, err := manifest.LoadAll(o.Plugins)
	if err != nil {
		return nil, err
	}
	env, err := tools.EnvFrom(getenv, wd)
	if err != nil {
		return nil, err
	}
	s := &Set{Env: env}
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

// bind gives every entry of the manifests what runs it, and adds the built-ins that are left, if all are asked for.
func (s *Set) bind(o *Options, entries []manifest.Entry, all bool) (list []toolhost.Entry, err error) {
	own := make(map[string]tools.Builtin)
	for _, b := range tools.Builtins(s.Env) {
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
	for _, b := range tools.Builtins(s.Env) {
		if all && !b.Hidden && !bound[b.AID] {
			list = append(list, toolhost.Entry{Descriptor: b.Descriptor, Tool: b.Tool})
		}
	}
	return list, nil
}

// entry returns the tool of a manifest's entry; ok is false for one that is only declared.
func (s *Set) entry(o *Options, m *manifest.Entry, own map[string]tools.Builtin) (e toolhost.Entry, ok bool, err error) {
	e = toolhost.Entry{Descriptor: m.Descriptor, Timeout: m.Exec.Timeout}
	if !m.Exec.Kind.External() {
		b, found := own[m.Exec.Builtin]
		if !found {
			if m.Exec.Kind == manifest.Builtin {
				return e, false, manifest.Invalid(m.Path, "no built-in tool is named "+m.Exec.Builtin)
			}
			return e, false, nil
		}
		e.Tool, e.Fast, e.Tier = b.Tool, b.Fast, max(e.Tier, b.Tier)
		return e, true, nil
	}
	e.External = true
	e.Breaker = workers.NewBreaker(o.breaker(m.AID))
	e.Tool, err = s.worker(o, m)
	return e, err == nil, err
}

func (o *Options) breaker(aid string) workers.BreakerConfig {
	c := workers.BreakerConfig{
		Threshold: number("MACHINA_TOOL_FAIL_THRESHOLD", workers.DefaultThreshold),
		Cooldown:  time.Duration(number("MACHINA_TOOL_COOLDOWN_MS", int(workers.DefaultCooldown/time.Millisecond))) * time.Millisecond,
		Now:       func() int64 { return link.Now().Mono },
	}
	if o.BreakerThreshold >= 0 {
		c.Threshold = o.BreakerThreshold
	}
	if o.BreakerCooldown >= 0 {
		c.Cooldown = o.BreakerCooldown
	}
	if o.Events != nil {
		c.Changed = func(st workers.BreakerState, failures int) {
			o.Events(toolhost.BreakerEvent(aid, st, failures))
		}
	}
	return c
}

// number reads an environment name; one that does not parse means the default (toolhost §6).
func number(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// ToolTimeout is how long a tool may run that sets no limit of its own (toolhost §4.9).
func ToolTimeout() time.Duration {
	ms := number("MACHINA_TOOLHOST_TIMEOUT_MS", 0)
	if ms <= 0 {
		ms = 1000 * number("MACHINA_TOOLHOST_TIMEOUT", 0)
	}
	if ms <= 0 {
		return toolhost.DefaultToolTimeout
	}
	return min(time.Duration(ms)*time.Millisecond, toolhost.MaxToolTimeout)
}

// ServerConfig returns what a server of these tools is made of, as far as the environment says it.
func (s *Set) ServerConfig() toolhost.Config {
	enforce, given := os.LookupEnv("MACHINA_LEASE_ENFORCE")
	return toolhost.Config{
		Registry: s.Registry, ToolTimeout: ToolTimeout(),
		APIToken: os.Getenv("MACHINA_API_TOKEN"), OperatorToken: os.Getenv("MACHINA_OPERATOR_TOKEN"),
		EnforceLeases: toolhost.ParseEnforcement(enforce, given),
		Policy:        selector.PolicyFrom(os.Getenv, s.Env.Root),
	}
}

// Tier0 returns the manifest of the tools that tool_exec brings along, "" where there is none (toolhost §2.1).
func Tier0(root string) string {
	path := filepath.Join(root, "toolpacks", "tier0", "manifest.json")
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}

const mebibyte = 1 << 20

// worker makes what runs an external tool.
func (s *Set) worker(o *Options, m *manifest.Entry) (tool.Tool, error) {
	x := &m.Exec
	if x.Kind == manifest.Wasm {
		return workers.NewWasm(workers.WasmConfig{Module: x.Module, SHA256: x.SHA256, Stateless: x.Stateless})
	}
	if s.spawner == nil {
		s.spawner = workers.NewSpawner()
	}
	c := workers.ProcessConfig{
		Command: x.Command, Dir: x.Dir, Env: workers.Environ(os.LookupEnv, x.Env), SHA256: x.SHA256,
		Oneshot: x.Oneshot, Stateless: x.Stateless, Spawner: s.spawner,
		Pool: workers.PoolConfig{Min: x.Pool.Min, Max: x.Pool.Max, Idle: x.Pool.Idle, MaxRequests: x.Pool.MaxRequests},
		Limits: workers.Limits{AddressSpace: int64(x.Limits.ASMB) * mebibyte, CPU: int64(x.Limits.CPUS),
			FileSize: int64(x.Limits.FSizeMB) * mebibyte, OpenFiles: int64(x.Limits.OpenFile)},
	}
	if o.Events != nil {
		c.Started = func(pid int) { o.Events(toolhost.WorkerStarted(m.AID, pid)) }
		c.Exited = func(pid, code int, reason string) { o.Events(toolhost.WorkerExited(m.AID, pid, code, reason)) }
	}
	t := workers.NewProcess(c)
	s.closers = append(s.closers, func() { _ = t.Close() })
	return t, nil
}
