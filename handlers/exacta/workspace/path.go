package workspace

import (
	"strings"

	"trunkline/engine/exacta/fault"
	"trunkline/engine/exacta/relpath"
)

// checkPath checks the form of a rel path (exacta §4.16 rule 4, §4.17) and that no component is a
// folder that is never touched. It looks at no disk.
func checkPath(rel string) *fault.Fault {
	if code, token := relpath.Check(rel); code != "" {
		shown := printable(rel)
		return fault.New(code, token+": "+shown, shown)
	}
	for c := range strings.SplitSeq(rel, "/") {
		if reserved(c) {
			return fault.New("SEC-002", "denied: "+rel, rel)
		}
	}
	return nil
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
