package relpath

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a path (exacta §4.16 rule 4).
const (
	MaxBytes      = 1024
	MaxComponents = 20
)

// Tokens of the rules that Check applies (exacta §4.16 rule 4).
const (
	Traversal = "traversal" // with SEC-001
	Absolute  = "absolute"  // with FS-003
	Form      = "path_form" // with VAL-003
)

// Check tests whether path is safe as the target of an edit. It returns the code of the error and
// the token of the rule, both empty if the path is safe (exacta §4.16 rule 4). It does not
// allocate.
func Check(path string) (code, token string) {
	switch {
	case climbs(path):
		return "SEC-001", Traversal
	case path != "" && path[0] == '/', strings.IndexByte(path, '\\') >= 0, hasDrive(path):
		return "FS-003", Absolute
	case !wellFormed(path):
		return "VAL-003", Form
	}
	return "", ""
}

// Valid reports whether Check accepts path.
func Valid(path string) bool {
	code, _ := Check(path)
	return code == ""
}

// climbs reports whether a component is "..", whichever separator of a platform it stands between.
func climbs(path string) bool {
	for rest := path; ; {
		end := strings.IndexAny(rest, `/\`)
		if end < 0 {
			return rest == ".."
		}
		if rest[:end] == ".." {
			return true
		}
		rest = rest[end+1:]
	}
}

func hasDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && ('a' <= path[0]|0x20 && path[0]|0x20 <= 'z')
}

// wellFormed reports whether path is short, is text without control characters, and has no empty
// and no "." component.
func wellFormed(path string) bool {
	if len(path) > MaxBytes || !utf8.ValidString(path) || strings.IndexFunc(path, unicode.IsControl) >= 0 {
		return false
	}
	for n := 1; ; n++ {
		component, rest, more := strings.Cut(path, "/")
		if component == "" || component == "." || n > MaxComponents {
			return false
		}
		if !more {
			return true
		}
		path = rest
	}
}
