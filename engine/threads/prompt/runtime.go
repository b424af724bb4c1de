package prompt

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

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
