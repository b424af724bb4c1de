package toolset

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/selector"
)

// rootName is the variable that names the root (toolhost §4.7), for workers too.
const rootName = "MACHINA_ROOT"

// environment returns the variables of the process, but for the root where Options name one.
func (o *Options) environment() func(string) string {
	if o.Root == "" {
		return os.Getenv
	}
	return func(name string) string {
		if name == rootName {
			return o.Root
		}
		return os.Getenv(name)
	}
}

// lookup is the environment that workers inherit from: their root is the one of the other tools, wherever it was named.
func (s *Set) lookup(name string) (value string, ok bool) {
	if name == rootName {
		return s.Env.Root, s.rooted
	}
	return os.LookupEnv(name)
}

// number reads an environment name; one that does not parse means the default (toolhost §6).
func number(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// span reads an environment name that counts in unit. What is below zero is zero, and what no Duration can hold is the longest.
func span(name string, unit, def time.Duration) time.Duration {
	n := number(name, int(def/unit))
	return time.Duration(min(max(n, 0), int(math.MaxInt64/unit))) * unit
}

// ToolTimeout is how long a tool may run that sets no limit of its own (toolhost §4.9). A name that says zero or less says nothing.
func ToolTimeout() time.Duration {
	limit := span("MACHINA_TOOLHOST_TIMEOUT_MS", time.Millisecond, 0)
	if limit == 0 {
		limit = span("MACHINA_TOOLHOST_TIMEOUT", time.Second, 0)
	}
	if limit == 0 {
		limit = toolhost.DefaultToolTimeout
	}
	return min(limit, toolhost.MaxToolTimeout)
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
