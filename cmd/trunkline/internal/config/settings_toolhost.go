package config

import "math"

// Toolhost is the section of the tool server in serve (toolhost §2.3). An empty ListenAddr switches
// it off. Its tools take the environment names of the protocol (MACHINA_…) beside these settings.
type Toolhost struct {
	Access
	MaxConnections int
	Loops          int
	MaxLineBytes   int

	UnfinishedLinesBytes int
	Plugins              []string
	Root                 string
	ToolTimeoutMs        int
	IdempotencyTTLMs     int
	Queue                int
	Executors            int
}

// Bounds of the toolhost section.
const (
	maxLine    = 10 << 20
	minLine    = 1024
	maxToolMs  = 600_000
	maxWindow  = 24 * 3600 * 1000
	maxWorkers = 4096
)

var toolhostSettings = []setting{
	{key: "toolhost.max_connections", def: 4096, min: 1, max: maxCount,
		help: "open connections; one more gets an error and is closed",
		at:   func(c *Config) any { return &c.Toolhost.MaxConnections }},
	{key: "toolhost.loops", def: 0, min: 0, max: 1024,
		help: "event loops; 0 chooses by the number of processors",
		at:   func(c *Config) any { return &c.Toolhost.Loops }},
	{key: "toolhost.max_line_bytes", def: maxLine, min: minLine, max: maxLine,
		help: "longest request line of a connection, without its end",
		at:   func(c *Config) any { return &c.Toolhost.MaxLineBytes }},
	{key: "toolhost.unfinished_lines_bytes", def: 268435456, min: 1, max: math.MaxInt,
		help: "bytes of unfinished lines that all connections hold together, without 128 KiB of each; beyond it the one that asks for more is refused",
		at:   func(c *Config) any { return &c.Toolhost.UnfinishedLinesBytes }},
	{key: "toolhost.plugins", def: "builtin",
		help: "where the tools come from, comma separated: builtin, toolpack manifests (.json), directories of them",
		at:   func(c *Config) any { return &c.Toolhost.Plugins }},
	{key: "toolhost.root", def: "",
		help: "directory that tools cannot leave; empty: MACHINA_ROOT, else the working directory",
		at:   func(c *Config) any { return &c.Toolhost.Root }},
	{key: "toolhost.tool_timeout_ms", def: 0, min: 0, max: maxToolMs,
		help: "how long a tool may run; 0: MACHINA_TOOLHOST_TIMEOUT_MS, else MACHINA_TOOLHOST_TIMEOUT, else 30 s",
		at:   func(c *Config) any { return &c.Toolhost.ToolTimeoutMs }},
	{key: "toolhost.idempotency_ttl_ms", def: 60000, min: 1, max: maxWindow,
		help: "how long the reply to a request with an idempotency key is kept",
		at:   func(c *Config) any { return &c.Toolhost.IdempotencyTTLMs }},
	{key: "toolhost.queue", def: 1024, min: 1, max: maxCount,
		help: "tools that run or wait at a time, fast ones left out; one more is refused as overloaded",
		at:   func(c *Config) any { return &c.Toolhost.Queue }},
	{key: "toolhost.executors", def: 0, min: 0, max: maxWorkers,
		help: "built-in tools that run at a time away from the event loops, and half as many more that work long; 0: two for each processor, at least four",
		at:   func(c *Config) any { return &c.Toolhost.Executors }},
}
