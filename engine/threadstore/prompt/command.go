package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// The placeholders of a template of arguments. Each stands for a whole element.
const (
	sessionPlaceholder = "{session_id}"
	promptPlaceholder  = "{prompt}"
)

var (
	resumable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$`) })
	bare      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`) })
)

// ResumableSession reports whether a session identifier may be an argument. It cannot start an
// option.
func ResumableSession(id string) bool { return resumable().MatchString(id) }

// checkTemplate returns why a template cannot be a command, nil if it can.
func checkTemplate(template []string) error {
	if len(template) == 0 || template[0] == "" {
		return errors.New("cannot run a command without a program")
	}
	if template[0] == sessionPlaceholder || template[0] == promptPlaceholder {
		return fmt.Errorf("cannot run %s: a placeholder is no program", template[0])
	}
	return nil
}

// Argv returns the arguments of a command. The prompt must be an envelope, or begin as one does: it
// then is no option for any program.
func Argv(template []string, sessionID, prompt string) ([]string, error) {
	if err := checkTemplate(template); err != nil {
		return nil, err
	}
	argv := fill(template, sessionID, prompt)
	for i, element := range template {
		switch {
		case element == sessionPlaceholder && !ResumableSession(sessionID):
			return nil, fmt.Errorf("cannot resume session %.140q", sessionID)
		case element == promptPlaceholder && !strings.HasPrefix(prompt, "["):
			return nil, fmt.Errorf("cannot take %.20q for a prompt: it does not begin with a bracket", prompt)
		case strings.IndexByte(argv[i], 0) >= 0:
			return nil, fmt.Errorf("cannot run a command: argument %d has a null character", i)
		}
	}
	return argv, nil
}

func fill(template []string, sessionID, prompt string) []string {
	argv := make([]string, len(template))
	for i, element := range template {
		switch element {
		case sessionPlaceholder:
			element = sessionID
		case promptPlaceholder:
			element = prompt
		}
		argv[i] = element
	}
	return argv
}

// DisplayCommand returns a command for people, quoted as a shell reads it. It is never run; prompt
// is the plain one, without envelope.
func DisplayCommand(template []string, sessionID, prompt string) string {
	argv := fill(template, sessionID, prompt)
	for i, arg := range argv {
		argv[i] = quoteArg(arg)
	}
	return strings.Join(argv, " ")
}

var (
	inDouble = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")
	inSingle = strings.NewReplacer(`'`, `'\''`)
)

// quoteArg returns one argument as a shell reads it. Shells replace ! inside double quotes too.
func quoteArg(arg string) string {
	switch {
	case bare().MatchString(arg):
		return arg
	case strings.Contains(arg, "!"):
		return "'" + inSingle.Replace(arg) + "'"
	}
	return `"` + inDouble.Replace(arg) + `"`
}

// Target is the pane of tmux that a runtime names.
type Target struct {
	Session, Window string
	// Pane is -1 if the runtime names none.
	Pane int
}

const (
	part = `([A-Za-z0-9_@%+=,][A-Za-z0-9_@%+=,-]{0,63})`
	pane = `(0|[1-9][0-9]{0,63})`
)

var targetText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + part + `:` + part + `(?:\.` + pane + `)?$`) })

// ParseRuntime returns the target of a runtime; ok is false if it names none (threads §4.9 step 1).
// The forms are tmux://session:window.pane and tmux:session:window.pane, in which the pane may be
// missing, and session:window.pane. tmux writes no pane with leading zeros.
func ParseRuntime(runtime string) (t Target, ok bool) {
	text, prefixed := strings.CutPrefix(runtime, "tmux://")
	if !prefixed {
		text, prefixed = strings.CutPrefix(runtime, "tmux:")
	}
	m := targetText().FindStringSubmatch(text)
	if m == nil || m[3] == "" && !prefixed {
		return Target{}, false
	}
	t = Target{Session: m[1], Window: m[2], Pane: -1}
	if m[3] != "" {
		n, err := strconv.ParseInt(m[3], 10, 32)
		if err != nil {
			return Target{}, false
		}
		t.Pane = int(n)
	}
	return t, true
}
