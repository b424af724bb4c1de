package manifest

import (
	"time"

	"trunkline/handlers/toolhost/tool"
)

// Entry is one tool of a manifest.
type Entry struct {
	// Descriptor is the manifest's part about the tool. Tier is what name, side effects, tier and trust_tier come to; where a
	// built-in runs the tool, the built-in's own tier must be taken into account as well (toolhost §4.7).
	tool.Descriptor
	// Exec is how it is run.
	Exec Exec
	// Path is the manifest's file, as errors name it.
	Path string
}

// Kind is what runs a tool.
type Kind uint8

// The kinds of Exec.
const (
	Declared Kind = iota // nothing is declared: the built-in of the same AID, and if there is none it cannot be run
	Builtin              // the built-in that Exec.Builtin names
	Process              // a program
	Wasm                 // a WASI command module
)

// External reports whether a worker runs the tool, not the server itself.
func (k Kind) External() bool { return k >= Process }

// Exec is how a tool is run. The zero value of what does not belong to the kind is left.
type Exec struct {
	Kind Kind
	// Builtin is the AID of the built-in, for Declared that of the tool itself.
	Builtin string
	// Command is the program and its arguments. A program with a "/" is an absolute path; any other is to be looked up in PATH.
	Command []string
	// Oneshot asks for one process for each call; otherwise a process serves many.
	Oneshot bool
	// Dir is the working directory, an absolute path.
	Dir string
	// Env holds further "NAME=value" for the environment, as the manifest has them.
	Env []string
	// Pool is how many processes there may be. Not for Oneshot, but for Max.
	Pool Pool
	// Stateless means that the tool is not shown the caller's state (state "none").
	Stateless bool
	// Limits of a process.
	Limits Limits
	// Module is the absolute path of the WebAssembly module.
	Module string
	// Timeout of a call; 0: the server's.
	Timeout time.Duration
	// SHA256 is what the executable or module must have, in lower-case hex; empty: anything.
	SHA256 string
}

// Pool is how many workers a tool has, and for how long (toolhost §4.9).
type Pool struct {
	// Min workers are kept though they are idle, Max may be there at a time.
	Min, Max int
	// Idle is how long a worker above Min may be idle.
	Idle time.Duration
	// MaxRequests is how many calls a worker serves before another takes its place.
	MaxRequests int
}

// Limits bound what a worker process may use (toolhost §4.9 "rlimits").
type Limits struct {
	ASMB     int // address space, MiB
	CPUS     int // CPU time of a oneshot call, s
	FSizeMB  int // size of a file it writes, MiB
	OpenFile int // open files
}

// Defaults and bounds of toolhost §4.9 and §4.10.
const (
	defaultPoolMax     = 4
	maxPool            = 64
	defaultIdle        = 60 * time.Second
	maxIdle            = 24 * time.Hour
	defaultMaxRequests = 1000
	maxMaxRequests     = 1 << 30
	maxTimeout         = 600 * time.Second
)

const (
	// maxEnv is how many variables a tool's env may have.
	maxEnv = 256
	// maxEnvBytes is how long they may be together, each as "NAME=value": half of what the system takes for one alone.
	maxEnvBytes = 64 << 10
)

// DefaultPool returns the pool of a tool whose manifest does not set it.
func DefaultPool() Pool {
	return Pool{Max: defaultPoolMax, Idle: defaultIdle, MaxRequests: defaultMaxRequests}
}

// defaultLimits returns the limits of a process, which a manifest can only lower.
func defaultLimits() Limits { return Limits{ASMB: 1024, CPUS: 30, FSizeMB: 10, OpenFile: 64} }
