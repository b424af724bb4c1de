package manifest

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

var (
	execNames = jsonx.NewNames("kind", "timeout_ms", "sha256", "name", "module",
		"command", "mode", "cwd", "env", "pool", "state", "limits")
	poolNames  = jsonx.NewNames("min", "max", "idle_ms", "max_requests")
	limitNames = jsonx.NewNames("as_mb", "cpu_s", "fsize_mb", "nofile")
)

const (
	execKind = iota
	execTimeout
	execSHA
	execName
	execModule
	execCommand
	execMode
	execDir
	execEnv
	execPool
	execState
	execLimits
)

func memberOf(k Kind) func(i int) bool {
	return func(i int) bool {
		switch k {
		case Builtin:
			return i == execKind || i == execName
		case Wasm:
			return i <= execSHA || i == execModule
		}
		return i <= execSHA || i >= execCommand
	}
}

func parseExec(raw []byte, where, dir string, trusted trust, why *string) Exec {
	o := open(raw, execNames, where, why)
	if *why != "" {
		return Exec{}
	}
	e := Exec{Kind: Builtin + Kind(o.oneOf(execKind, "builtin", "process", "wasm"))}
	if *why != "" {
		return Exec{}
	}
	o.only(raw, memberOf(e.Kind))
	switch e.Kind {
	case Builtin:
		if e.Builtin = o.text(execName); !aidID.MatchString(e.Builtin) {
			o.bad(execName, "must match "+aidGrammar)
		}
		return e
	case Wasm:
		e.Module = o.path(execModule, dir)
	default:
		o.process(&e, dir)
	}
	if ms := o.integer(execTimeout, 1, int(maxTimeout/time.Millisecond), 0); ms > 0 {
		e.Timeout = time.Duration(ms) * time.Millisecond
	}
	e.SHA256 = o.sha(trusted)
	return e
}

// sha returns the hash, which a signed toolpack must have: its signature is good for nothing else.
func (o *object) sha(trusted trust) string {
	if !o.has(execSHA) {
		if trusted == signed {
			o.bad(execSHA, "required for tier1_signed")
		}
		return ""
	}
	s := strings.ToLower(o.text(execSHA))
	if b, err := hex.DecodeString(s); err != nil || len(b) != 32 {
		o.bad(execSHA, "must be 64 hex digits")
	}
	return s
}

func (o *object) process(e *Exec, dir string) {
	e.Command = o.texts(execCommand, 1)
	for i, arg := range e.Command {
		if strings.IndexByte(arg, 0) >= 0 || i == 0 && arg == "" {
			o.bad(execCommand, "not a command line")
		}
	}
	if len(e.Command) > 0 && strings.Contains(e.Command[0], "/") {
		e.Command[0] = tool.Under(dir, e.Command[0])
	}
	e.Oneshot = true
	if o.has(execMode) {
		e.Oneshot = o.oneOf(execMode, "serve", "oneshot") == 1
	}
	if e.Dir = dir; o.has(execDir) {
		e.Dir = o.path(execDir, dir)
	}
	if o.has(execState) {
		e.Stateless = o.oneOf(execState, "snapshot", "none") == 1
	}
	if o.has(execEnv) {
		e.Env = o.environment()
	}
	if e.Pool = tool.DefaultPool(); o.has(execPool) {
		e.Pool = o.pool()
	}
	if e.Limits = defaultLimits(); o.has(execLimits) {
		e.Limits = o.limits()
	}
}

// path returns a path that must be there, as an absolute one.
func (o *object) path(i int, dir string) string {
	p := o.text(i)
	if p == "" || strings.IndexByte(p, 0) >= 0 {
		o.bad(i, "not a path")
	}
	return tool.Under(dir, p)
}

func (o *object) environment() []string {
	var env []string
	size := 0
	each := jsonx.OpenObject(o.object(execEnv))
	for key, v, ok := each.Next(); ok; key, v, ok = each.Next() {
		name := string(jsonx.Unescape(key))
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			o.bad(execEnv, "not a name: "+clip(name))
		case v.Kind != jsonx.String:
			o.bad(execEnv, clip(name)+": must be a string")
		default:
			value := string(jsonx.Unescape(v.Raw[1 : len(v.Raw)-1]))
			if strings.IndexByte(value, 0) >= 0 {
				o.bad(execEnv, clip(name)+": not a value")
			}
			env = append(env, name+"="+value)
			size += len(name) + len("=") + len(value)
		}
		switch {
		case len(env) > maxEnv:
			o.bad(execEnv, "more than "+strconv.Itoa(maxEnv)+" variables")
		case size > maxEnvBytes:
			o.bad(execEnv, "exceeds 64KB limit")
		}
		if *o.why != "" {
			return nil
		}
	}
	return env
}

func (o *object) pool() tool.Pool {
	raw := o.object(execPool)
	in := open(raw, poolNames, o.where+"pool.", o.why)
	in.only(raw, nil)
	p := tool.DefaultPool()
	p.Max = in.integer(1, 1, maxPool, p.Max)
	p.Min = in.integer(0, 0, p.Max, p.Min)
	p.Idle = time.Duration(in.integer(2, 0, int(maxIdle/time.Millisecond), int(p.Idle/time.Millisecond))) * time.Millisecond
	p.MaxRequests = in.integer(3, 1, maxMaxRequests, p.MaxRequests)
	return p
}

func (o *object) limits() workerexec.Limits {
	raw := o.object(execLimits)
	in := open(raw, limitNames, o.where+"limits.", o.why)
	in.only(raw, nil)
	l := defaultLimits()
	units := [...]int64{mebibyte, 1, mebibyte, 1}
	for i, n := range [...]*int64{&l.AddressSpace, &l.CPU, &l.FileSize, &l.OpenFiles} {
		most := int(*n / units[i])
		*n = int64(in.integer(i, 1, most, most)) * units[i]
	}
	return l
}

// Entry is one tool of a manifest.
type Entry struct {
	// Descriptor is the manifest's part about the tool. Tier is what name, side effects, tier and
	// trust_tier come to; the tier of a built-in that runs the tool counts as well (toolhost §4.7).
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
	Declared Kind = iota // the built-in of the same AID; without one it cannot be run
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
	// Command is the program, an absolute path or a name in PATH, and its arguments.
	Command []string
	// Oneshot asks for one process for each call; otherwise a process serves many.
	Oneshot bool
	// Dir is the working directory, an absolute path.
	Dir string
	// Env holds further "NAME=value" for the environment, as the manifest has them.
	Env []string
	// Pool is how many processes there may be. Not for Oneshot, but for Max.
	Pool tool.Pool
	// Stateless means that the tool is not shown the caller's state (state "none").
	Stateless bool
	// Limits of a process.
	Limits workerexec.Limits
	// Module is the absolute path of the WebAssembly module.
	Module string
	// Timeout of a call; 0: the server's.
	Timeout time.Duration
	// SHA256 is what the executable or module must have, in lower-case hex; empty: anything.
	SHA256 string
}

// Bounds of toolhost §4.9 and §4.10.
const (
	maxPool        = 64
	maxIdle        = 24 * time.Hour
	maxMaxRequests = 1 << 30
	maxTimeout     = 600 * time.Second
	mebibyte       = 1 << 20
)

const (
	// maxEnv is how many variables a tool's env may have.
	maxEnv = 256
	// maxEnvBytes is how long they may be together, each as "NAME=value".
	maxEnvBytes = 64 << 10
)

// defaultLimits returns the limits of a process, which a manifest can only lower.
func defaultLimits() workerexec.Limits {
	return workerexec.Limits{AddressSpace: 1024 * mebibyte, CPU: 30, FileSize: 10 * mebibyte, OpenFiles: 64}
}
