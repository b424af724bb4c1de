package diff

import (
	"strconv"
	"unicode/utf8"

	"trunkline/engine/exacta/fault"
	"trunkline/engine/exacta/relpath"
)

// Codes of problems (exacta §4.16).
const (
	invalid = "VAL-003"
	drifted = "VAL-005"
	absent  = "FS-001"
)

// Problem is why a diff is refused. Text is the path where the code's message names one, else a
// place such as "line 4"; it never holds content.
type Problem struct {
	Code  string // of the registry, exacta §3.7
	Token string // of the rule, exacta §4.16
	Text  string
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + " " + p.Token + ": " + p.Text }

// Fault returns the problem as an error for clients. prefix precedes the token in the detail: for
// a diff of a set it is "diffs[0] ".
func (p *Problem) Fault(prefix string) *fault.Fault {
	return fault.New(p.Code, prefix+p.Token+": "+p.Text, p.Text)
}

// atLine returns a problem of a line of the diff, counted from 1.
func atLine(token string, n int) *Problem {
	return &Problem{Code: invalid, Token: token, Text: "line " + strconv.Itoa(n)}
}

// ofPath returns the problem of an unsafe path, nil if it is safe.
func ofPath(path string) *Problem {
	code, token := relpath.Check(path)
	if code == "" {
		return nil
	}
	return &Problem{Code: code, Token: token, Text: shown(path)}
}

// shown returns path, cut to the length of the longest legal one.
func shown(path string) string {
	if len(path) <= relpath.MaxBytes {
		return path
	}
	end := relpath.MaxBytes
	for end > 0 && !utf8.RuneStart(path[end]) {
		end--
	}
	return path[:end] + "…"
}
