package toolset

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/selector"
	"trunkline/handlers/toolhost/workers"
)

// rootName is the variable that names the root (toolhost §4.7), for workers too.
const rootName = "MACHINA_ROOT"

// switches are the booleans of the environment.
var switches = []string{enforceName, "MACHINA_MEMORY_VECDB_ENABLE", "MACHINA_POLICY_ALLOW_UNSAFE", "MACHINA_WAL_FSYNC"}

const enforceName = "MACHINA_LEASE_ENFORCE"

// environment is the variables of the process, but for the root where Options name one.
type environment struct {
	root string
	bad  error // the first switch that was read and is neither on nor off
}

// get returns a variable, of a switch that is set "1" or "0".
func (e *environment) get(name string) string {
	if name == rootName && e.root != "" {
		return e.root
	}
	value, set := os.LookupEnv(name)
	if !set || !slices.Contains(switches, name) {
		return value
	}
	switch value {
	case "1", "true":
		return "1"
	case "0", "false":
		return "0"
	}
	e.bad = cmp.Or(e.bad, fmt.Errorf("cannot use %s = %q: want 1, true, 0 or false", name, value))
	return value
}

// lookup is the environment that workers inherit from: their root is the one of the other tools,
// wherever it was named.
func (s *Set) lookup(name string) (value string, ok bool) {
	if name == rootName {
		return s.Env.Root, s.rooted
	}
	return os.LookupEnv(name)
}

// command splits the command line of an environment name. A path counts from the root.
func (s *Set) command(name, line string) (argv []string, err error) {
	argv, ok := selector.SplitCommand(line)
	if !ok || len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("cannot use %s: not a command line: %s", name, line)
	}
	if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(s.Env.Root, argv[0])
	}
	return argv, nil
}

// maxProcessesName is the variable that bounds the processes of a worker.
const maxProcessesName = "MACHINA_WORKER_MAX_PROCS"

// wrapperName is the variable that names what external tools are started through.
const wrapperName = "MACHINA_PROC_WRAPPER"

// wrap reads what external tools are started through. A wrapper that is named and empty is an
// error: tools must not run without one because a text was lost.
func (s *Set) wrap() (err error) {
	if line, set := os.LookupEnv(wrapperName); set {
		s.wrapper.Path = os.Getenv("PATH")
		s.wrapper.Command, err = s.command(wrapperName, line)
	}
	return err
}

// number reads an environment name; one that does not parse means the default (toolhost §6).
func number(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// span reads an environment name that counts in unit. What is below zero is zero, and what no
// Duration can hold is the longest.
func span(name string, unit, def time.Duration) time.Duration {
	n := number(name, int(def/unit))
	return time.Duration(min(max(n, 0), int(math.MaxInt64/unit))) * unit
}

// ToolTimeout is how long a tool may run that sets no limit of its own (toolhost §4.9). A name that
// holds zero or less is ignored.
func ToolTimeout() time.Duration {
	limit := span("MACHINA_TOOLHOST_TIMEOUT_MS", time.Millisecond, 0)
	if limit == 0 {
		limit = span("MACHINA_TOOLHOST_TIMEOUT", time.Second, 0)
	}
	limit = cmp.Or(limit, toolhost.DefaultToolTimeout)
	return min(limit, toolhost.MaxToolTimeout)
}

// ServerConfig returns c with these tools, and what the environment sets; a ToolTimeout of c stands
// over that of the environment. A switch that is neither on nor off
// is an error: what it guards must not be open because of a spelling. So is a wrapper that nothing
// can be started through, and a limit that cannot be kept.
func (s *Set) ServerConfig(c toolhost.Config) (toolhost.Config, error) {
	var env environment
	c.Registry, c.ToolTimeout = s.Registry, cmp.Or(c.ToolTimeout, ToolTimeout())
	c.APIToken, c.OperatorToken = os.Getenv("MACHINA_API_TOKEN"), os.Getenv("MACHINA_OPERATOR_TOKEN")
	c.Policy = selector.PolicyFrom(env.get, s.Env.Root, connection.Mono)
	for _, name := range switches { // those that nothing asks for now as well
		env.get(name)
	}
	switch env.get(enforceName) {
	case "1":
		c.EnforceLeases = toolhost.EnforceOn
	case "0":
		c.EnforceLeases = toolhost.EnforceOff
	}
	if number(maxProcessesName, 0) > 0 {
		if err := workers.CanCount(); err != nil {
			env.bad = cmp.Or(env.bad, fmt.Errorf("cannot use %s: %w", maxProcessesName, err))
		}
	}
	if err := s.wrapper.Check(); err != nil {
		env.bad = cmp.Or(env.bad, fmt.Errorf("cannot use %s: %w", wrapperName, err))
	}
	return c, env.bad
}

// Tier0 returns the manifest of the tools that tool_exec brings along, "" where there is none
// (toolhost §2.1).
func Tier0(root string) string {
	path := filepath.Join(root, "toolpacks", "tier0", "manifest.json")
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}
