package selector

import (
	"cmp"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

// Bounds of the policy's settings; what is outside counts as the nearer bound.
const (
	maxPolicyTimeout = 600_000 // ms, as for a tool (toolhost §6)
	maxPolicyStdout  = 1 << 20 // bytes: more fits no reply
)

// Policy is the external program that chooses (toolhost §4.8). Any number of runs may share it.
type Policy struct {
	argv       []string // at least one
	root       string
	env        []string
	tmp        string // where the file with the question goes
	allowedExe []string
	scriptRoot string
	unsafe     bool // no guards
	timeout    time.Duration
	stdoutMax  int
	limits     workerexec.Limits
	breaker    *tool.Breaker
}

// PolicyFrom returns the policy of MACHINA_POLICY_* (toolhost §4.8, §6), nil without a command that
// can be split. It works in the folder root. now reads the monotonic clock in ns, for the breaker.
func PolicyFrom(getenv func(string) string, root string, now func() int64) *Policy {
	argv, ok := SplitCommand(getenv("MACHINA_POLICY_CMD"))
	if !ok || len(argv) == 0 {
		return nil
	}
	root, tmp := absolute(root), getenv("TMPDIR")
	tmp = cmp.Or(tmp, os.TempDir())
	env := settings(getenv)
	lookup := func(name string) (string, bool) { v := getenv(name); return v, v != "" }
	return &Policy{
		argv:       argv,
		root:       root,
		env:        procgroup.Environ(lookup, []string{"MACHINA_ROOT=" + root}),
		tmp:        absolute(tmp),
		allowedExe: env.list("ALLOWED_EXE", "python3,python,bash,sh,node"),
		scriptRoot: tool.Under(root, env.text("ALLOWED_SCRIPT_ROOT", "policies")),
		unsafe:     env.text("ALLOW_UNSAFE", "") == "1",
		timeout:    time.Duration(env.number("TIMEOUT_MS", 2500, 1, maxPolicyTimeout)) * time.Millisecond,
		stdoutMax:  int(env.number("STDOUT_MAX", 65536, 1, maxPolicyStdout)),
		limits: workerexec.Limits{
			CPU:          env.amount("RLIMIT_CPU_SEC", 2, 1),
			AddressSpace: env.amount("RLIMIT_AS_MB", 768, 1<<20),
			FileSize:     env.amount("RLIMIT_FSIZE_MB", 10, 1<<20),
			OpenFiles:    env.amount("RLIMIT_NOFILE", 64, 1),
			UserThreads:  env.amount("RLIMIT_NPROC", 32, 1),
		},
		breaker: tool.NewBreaker(tool.BreakerConfig{
			Threshold: int(env.number("FAIL_THRESHOLD", 5, 1, math.MaxInt32)),
			Cooldown:  time.Duration(env.number("COOLDOWN_MS", 30_000, 0, math.MaxInt32)) * time.Millisecond,
			Now:       now,
		}),
	}
}

// absolute makes a path mean the same to the policy process, which works elsewhere.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// settings reads variables of the policy by what follows MACHINA_POLICY_ in their names.
type settings func(string) string

func (s settings) text(name, without string) string {
	if v := s("MACHINA_POLICY_" + name); v != "" {
		return v
	}
	return without
}

func (s settings) list(name, without string) (list []string) {
	for word := range strings.SplitSeq(s.text(name, without), ",") {
		if word = strings.ToLower(strings.TrimSpace(word)); word != "" {
			list = append(list, word)
		}
	}
	return list
}

// number reads an integer within least and most; one that does not parse is the default (§6).
func (s settings) number(name string, without, least, most int64) int64 {
	n, err := strconv.ParseInt(s.text(name, ""), 10, 64)
	if err != nil {
		n = without
	}
	return min(max(n, least), most)
}

func (s settings) amount(name string, without, unit int64) int64 {
	return s.number(name, without, 0, math.MaxInt32) * unit
}

type question struct {
	goal        string
	view        *view
	tags        *stepTags
	stateDigest string
	mode        Mode
	inputs      []byte
	menu        menu
}

// appendJSON appends the content of the file that the policy is given (toolhost §4.8).
func (q *question) appendJSON(dst []byte) []byte {
	o := jsonx.Build(dst).Bytes("goal_digest", appendGoal(nil, q.goal, q.view, q.tags)).
		Text("state_digest", q.stateDigest).Text("control_mode", q.mode.String()).Raw("inputs", q.inputs)
	return append(q.menu.appendJSON(o.Name("menu")), '}')
}

// ask runs the policy once. asked is false when its breaker rests it; else why is the cause of a
// failure (toolhost §4.8), or "" and sel the answer, or the guards' refusal. nil fails at once.
func (p *Policy) ask(ctx context.Context, q *question) (sel Selection, why string, asked bool) {
	if p == nil {
		return sel, whyNotStarted, true
	}
	if raw := p.refusal(); raw != "" {
		return Selection{Kind: Invalid, Raw: raw}, "", true
	}
	probe, ok := p.breaker.Allow()
	if !ok {
		return sel, "", false
	}
	out, why := p.execute(ctx, q.appendJSON(nil))
	if why == "" {
		sel, why = validChoice(string(out), q.menu)
	}
	var failure *tool.DispatchError
	if why != "" {
		failure = &tool.DispatchError{Type: tool.Crash, Detail: why}
	}
	p.breaker.Done(probe, failure)
	return sel, why, true
}

func validChoice(text string, m menu) (sel Selection, why string) {
	if trim(text) == "" {
		return sel, "empty policy output"
	}
	sel, ok := parseSelection(text)
	if !ok {
		return sel, whyInvalid
	}
	if sel.Kind == Pick && m.sid(sel.SID) == nil {
		return sel, "policy picked non-existent sid: " + sel.SID
	}
	return sel, ""
}

// SplitCommand splits a command at spaces and tabs, without a shell (toolhost §4.8): single quotes
// take everything as it is, a backslash in double quotes the next byte; elsewhere it is a byte like
// any other. ok is false for quotes that do not end.
func SplitCommand(text string) (argv []string, ok bool) {
	var arg []byte
	inArg := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			if arg, i = appendQuoted(arg, text, i); i == len(text) {
				return nil, false
			}
			inArg = true
		case isSpace(rune(c)):
			if inArg {
				argv, arg, inArg = append(argv, string(arg)), arg[:0], false
			}
		default:
			arg, inArg = append(arg, c), true
		}
	}
	if inArg {
		argv = append(argv, string(arg))
	}
	return argv, true
}

// appendQuoted appends what the quote at text[i] encloses. end is its end, len(text) without one.
func appendQuoted(arg []byte, text string, i int) (out []byte, end int) {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return arg, i
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			arg = append(arg, text[i])
		default:
			arg = append(arg, c)
		}
	}
	return arg, len(text)
}

// refusal returns the guards' text of toolhost §4.8 or "", from the present links of the file
// system.
func (p *Policy) refusal() string {
	if p.unsafe {
		return ""
	}
	name := strings.ToLower(p.argv[0][strings.LastIndexByte(p.argv[0], '/')+1:])
	if !slices.Contains(p.allowedExe, name) {
		return "policy exe not allowed: " + name
	}
	script := ""
	if len(p.argv) > 1 {
		script = p.argv[1]
	}
	if !isScript(script) || !inside(p.scriptRoot, p.abs(script)) {
		return "policy script path not allowed: " + script
	}
	return ""
}

func isScript(path string) bool {
	return slices.Contains([]string{".py", ".sh", ".js"}, filepath.Ext(path))
}

// abs returns a path as the policy process sees it, which works in root.
func (p *Policy) abs(path string) string { return tool.Under(p.root, path) }

// inside reports whether path is below root once no link is left in either. A file that is missing
// counts by its name: running it fails, and the failure is clearer than a refusal.
func inside(root, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if os.IsNotExist(err) {
		return below(root, path)
	}
	realRoot, rootErr := filepath.EvalSymlinks(root)
	return err == nil && rootErr == nil && below(realRoot, real)
}

func below(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// executable returns the file to run: a path counts from root, a bare name is looked up in PATH.
func (p *Policy) executable() (string, error) {
	name := p.argv[0]
	if strings.Contains(name, "/") {
		name = p.abs(name)
	}
	return procgroup.Executable(name, p.env)
}
