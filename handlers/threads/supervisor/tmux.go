package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"trunkline/engine/procgroup"
)

// TmuxConfig configures a Tmux.
type TmuxConfig struct {
	// Path is the program. Empty: it is looked up in PATH.
	Path string
	// Environ is the environment of the server, of which tmux gets little.
	Environ []string
	// Sessions are patterns of sessions that may be typed into, as of path.Match.
	Sessions []string
	// Deny names commands that are never typed into.
	Deny []string
	// Allow names the programs that may be typed into; empty: all that are not denied.
	Allow []string
	// Quiet is how long a pane must not have been used by a person.
	Quiet time.Duration
	// Parse takes a runtime apart. pane is -1 if the runtime names none.
	Parse func(runtime string) (session, window string, pane int, ok bool)
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

// deliverLimit is how long a delivery may take until its paste. It ends well before the lease of
// its job (threads §5.4), so that no second delivery begins beside it.
const deliverLimit = 30 * time.Second

// Tmux delivers prompts into panes. It may be used by many goroutines.
type Tmux struct {
	cfg     TmuxConfig
	file    string
	env     []string
	timeout time.Duration // of one run of the program
	limit   time.Duration // of a delivery until its paste

	mu    sync.Mutex
	panes map[string]*paneLock // of deliveries under way, by pane
}

// paneLock is held by the delivery to one pane.
type paneLock struct {
	held  chan struct{}
	users int
}

// NewTmux returns a Tmux. It fails if there is no program, or a pattern is malformed.
func NewTmux(cfg TmuxConfig) (*Tmux, error) {
	for _, pattern := range cfg.Sessions {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("cannot use %q as a pattern of sessions: %w", pattern, err)
		}
	}
	cfg.Path = cmp.Or(cfg.Path, "tmux")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	file, err := procgroup.Executable(cfg.Path, cfg.Environ)
	if err != nil {
		return nil, err
	}
	return &Tmux{cfg: cfg, file: file, env: environ(cfg.Environ), timeout: commandTimeout, limit: deliverLimit, panes: map[string]*paneLock{}}, nil
}

// environ returns the environment of tmux. TMUX is not in it: the server may itself run in a pane.
// The locale has tmux print names as they are.
func environ(server []string) []string {
	env := slices.DeleteFunc(slices.Clone(server), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return name != "PATH" && name != "HOME" && name != "TMUX_TMPDIR"
	})
	return append(env, "LC_ALL=C.UTF-8", "LANG=C.UTF-8")
}

var versionText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^tmux (?:next-)?([0-9]{1,4})\.([0-9]{1,4})`) })

// Available returns why prompts cannot be delivered, nil if tmux is there and new enough. It does
// not mean that a tmux server runs.
func (t *Tmux) Available(ctx context.Context) error {
	text, err := t.run(ctx, nil, "-V")
	if err != nil {
		return err
	}
	if !newEnough(text) {
		return fmt.Errorf("cannot use %q: it is older than tmux 3.2", strings.TrimSpace(text))
	}
	return nil
}

// newEnough reports whether a version is 3.2 or later.
func newEnough(text string) bool {
	if strings.TrimSpace(text) == "tmux master" {
		return true
	}
	m := versionText().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > 3 || major == 3 && minor >= 2
}

// Deliver pastes a prompt into its pane and submits it (threads §4.9).
func (t *Tmux) Deliver(ctx context.Context, a Attempt) Outcome {
	session, window, index, ok := t.cfg.Parse(a.Runtime)
	if !ok {
		return outcome(UnsupportedRuntime, "")
	}
	if !slices.ContainsFunc(t.cfg.Sessions, func(pattern string) bool {
		match, _ := path.Match(pattern, session)
		return match
	}) {
		return outcome(TargetNotAllowed, "")
	}
	if !plainID().MatchString(a.TriggerID) {
		return outcome(SendKeysError, "the identifier of the trigger cannot name a buffer")
	}
	limited, cancel := context.WithTimeoutCause(ctx, t.limit, errTimeout)
	defer cancel()
	o := t.deliver(limited, &a, &target{session, window, index})
	if o.Code != Success && ctx.Err() != nil {
		o.Code = Interrupted
	}
	return o
}

func (t *Tmux) deliver(ctx context.Context, a *Attempt, to *target) Outcome {
	p, o := t.check(ctx, a, to)
	if o.Code != Success {
		return o
	}
	unlock, err := t.lock(ctx, p.id)
	if err != nil {
		return outcome(SendKeysError, err.Error())
	}
	defer unlock()
	if _, err := t.run(ctx, a.Envelope, "load-buffer", "-b", a.TriggerID, "-"); err != nil {
		return t.drop(ctx, a, outcome(SendKeysError, err.Error()))
	}
	// The pane may have gone, or its command changed, or a person come to it.
	again, o := t.check(ctx, a, to)
	if o.Code == Success && again.id != p.id {
		o = outcome(TargetNotFound, "another pane has taken the names of the target")
	}
	if o.Code == Success && again.inMode {
		// A mode would take the key that submits the prompt.
		if _, err := t.run(ctx, nil, "copy-mode", "-q", "-t", p.id); err != nil {
			o = outcome(SendKeysError, err.Error())
		}
	}
	if o.Code == Success && ctx.Err() != nil {
		o = outcome(SendKeysError, context.Cause(ctx).Error())
	}
	if o.Code != Success {
		return t.drop(ctx, a, o)
	}
	ctx = context.WithoutCancel(ctx) // what is pasted is also submitted
	if _, err := t.run(ctx, nil, "paste-buffer", "-p", "-d", "-b", a.TriggerID, "-t", p.id); err != nil {
		return t.drop(ctx, a, outcome(SendKeysError, err.Error()))
	}
	if _, err := t.run(ctx, nil, "send-keys", "-t", p.id, "Enter"); err != nil {
		return outcome(SendKeysError, err.Error())
	}
	return Outcome{}
}

// drop deletes the buffer of an attempt that ends without a paste.
func (t *Tmux) drop(ctx context.Context, a *Attempt, o Outcome) Outcome {
	_, _ = t.run(context.WithoutCancel(ctx), nil, "delete-buffer", "-b", a.TriggerID) // it may not be there
	return o
}

// check returns the pane of a target if a prompt may be pasted into it now.
func (t *Tmux) check(ctx context.Context, a *Attempt, to *target) (pane, Outcome) {
	text, err := t.run(ctx, nil, "list-panes", "-a", "-F", paneFormat)
	var exit *exitError
	switch {
	case errors.As(err, &exit): // no server runs
		return pane{}, outcome(TargetNotFound, err.Error())
	case err != nil:
		return pane{}, outcome(SendKeysError, err.Error())
	}
	p, ok := to.find(parsePanes(text))
	switch {
	case !ok:
		return p, outcome(TargetNotFound, "")
	case p.dead:
		return p, outcome(PaneDead, "")
	case t.denied(p.command):
		return p, outcome(PaneIsShell, "")
	}
	if o := t.inspect(&p); o.Code != Success {
		return p, o
	}
	switch {
	case p.shared:
		return p, outcome(OperatorBusy, "keys for the pane reach other panes too, or none")
	case a.Forced:
		return p, Outcome{}
	case p.inMode:
		return p, outcome(OperatorBusy, "the pane is in a mode")
	}
	return p, t.unused(ctx, p.id)
}

// unused succeeds if no person used a client of a pane within the quiet window.
func (t *Tmux) unused(ctx context.Context, id string) Outcome {
	text, err := t.run(ctx, nil, "list-clients", "-F", clientFormat)
	if err != nil {
		return outcome(SendKeysError, err.Error())
	}
	at, viewed := lastActivity(id, text)
	if viewed && t.cfg.Now().Sub(time.Unix(at, 0)).Abs() < t.cfg.Quiet {
		return outcome(OperatorBusy, "a client of the pane was used")
	}
	return Outcome{}
}

// inspect looks at the processes that would read what is typed into a pane: tmux shows the name of
// one, which anything may have.
func (t *Tmux) inspect(p *pane) Outcome {
	list, ok := readers(p.pid)
	if !ok {
		return outcome(PaneIsShell, "the processes of the pane cannot be inspected")
	}
	allowed := len(t.cfg.Allow) == 0 || slices.Contains(t.cfg.Allow, p.command)
	for i := range list {
		r := &list[i]
		shell := slices.ContainsFunc(t.cfg.Deny, func(name string) bool {
			return slices.Contains(r.names, name) || r.copyOf(name)
		})
		// A program may have replaced the arguments of its interpreter by its own name.
		if shell && atPrompt(r.argv, "c") || interpreter().MatchString(path.Base(r.argv[0])) && atPrompt(r.argv, "cemp") {
			return outcome(PaneIsShell, "a process of the pane is at a prompt")
		}
		allowed = allowed || slices.ContainsFunc(r.names, func(name string) bool {
			return slices.Contains(t.cfg.Allow, name)
		}) || len(r.argv) > 1 && slices.Contains(t.cfg.Allow, path.Base(r.argv[1])) // a script, behind its interpreter
	}
	if !allowed {
		return outcome(TargetNotAllowed, "the pane runs none of the programs that may be written to")
	}
	return Outcome{}
}

// interpreter matches programs that run what is typed unless they are given a program.
var interpreter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(i?python|pypy|node|nodejs|bun|ruby|irb|perl|php|lua)[0-9.]*$`)
})

// atPrompt reports whether a shell or an interpreter with these arguments has no program to run.
// given are the letters of the options that name one.
func atPrompt(argv []string, given string) bool {
	for i := 1; i < len(argv); i++ {
		switch a := argv[i]; {
		case a == "-i" || a == "--interactive" || a == "-":
			return true
		case a == "--rcfile" || a == "--init-file" || a == "-o" || a == "+o" || a == "-O" || a == "-W" || a == "-X":
			i++ // has a value
		case !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+"):
			return false // a script
		case !strings.HasPrefix(a, "--") && strings.ContainsAny(a, given):
			return strings.Contains(a, "i")
		}
	}
	return true
}

// denied reports whether a command must not be typed into. One without a name could be any.
func (t *Tmux) denied(command string) bool {
	name := strings.TrimLeft(path.Base(command), "-") // a login shell has a dash in front
	return command == "" || slices.Contains(t.cfg.Deny, name)
}

// lock waits until no other delivery to a pane is under way.
func (t *Tmux) lock(ctx context.Context, id string) (unlock func(), err error) {
	t.mu.Lock()
	l := t.panes[id]
	if l == nil {
		l = &paneLock{held: make(chan struct{}, 1)}
		t.panes[id] = l
	}
	l.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.panes, id)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
