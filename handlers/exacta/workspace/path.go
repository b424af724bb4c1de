package workspace

import (
	"strings"
	"unicode/utf8"

	"trunkline/engine/exacta/fault"
)

// The bounds of a rel path (exacta §4.16).
const (
	maxPathBytes = 1024
	maxPathDepth = 20
)

// CheckPath checks the form of a rel path (exacta §4.16 steps 3 and 4, §4.17) and that no component
// is a folder that is never touched. It looks at no disk.
func CheckPath(rel string) *fault.Fault {
	parts := strings.FieldsFunc(rel, func(r rune) bool { return r == '/' || r == '\\' })
	for _, c := range parts {
		if c == ".." {
			return fault.New("SEC-001", "traversal: "+rel)
		}
	}
	drive := len(rel) >= 2 && rel[1] == ':' && (rel[0]|0x20) >= 'a' && (rel[0]|0x20) <= 'z'
	if strings.HasPrefix(rel, "/") || strings.Contains(rel, `\`) || drive {
		return fault.New("FS-003", "absolute: "+rel, rel)
	}
	if !wellFormed(rel) {
		return fault.New("VAL-003", "path_form: "+printable(rel))
	}
	for _, c := range parts {
		if reserved(c) {
			return fault.New("SEC-002", "denied: "+rel, rel)
		}
	}
	return nil
}

// wellFormed reports whether rel can be named in a diff: bounds, no empty or "." component, no
// control character, UTF-8.
func wellFormed(rel string) bool {
	if rel == "" || len(rel) > maxPathBytes || !utf8.ValidString(rel) {
		return false
	}
	n := 0
	for c := range strings.SplitSeq(rel, "/") {
		n++
		if c == "" || c == "." || c == ".." {
			return false
		}
	}
	return n <= maxPathDepth && !strings.ContainsFunc(rel, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// printable returns the front of a path without control characters.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	return s
}

// reserved reports whether a component is never read or written, whatever the rules of a project
// (exacta §4.17). Case is ignored: some file systems do.
func reserved(c string) bool {
	for _, name := range [...]string{".exacta", ".git", ".hg", ".svn"} {
		if strings.EqualFold(c, name) {
			return true
		}
	}
	return false
}
