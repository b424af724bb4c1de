package planner

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// MaxScan is the size of the largest file that is searched, in bytes (exacta §4.17).
const MaxScan = 1 << 20

// symbols is where the symbols of a request are defined.
type symbols struct {
	files   []string // that of each symbol with one, in the order of the symbols, each once
	single  bool     // a symbol has one
	several bool     // a symbol has more
}

// findSymbols looks for the definitions of names in one pass over the tree.
func findSymbols(names []string, t Tree) (s symbols) {
	if len(names) == 0 {
		return s
	}
	count := make([]int, len(names))
	first := make([]string, len(names))
	for _, path := range t.Files() {
		content, err := t.Scan(path)
		if err != nil {
			continue
		}
		for i, name := range names {
			if count[i] < 2 && defines(content, name) {
				count[i]++
				first[i] = path
			}
		}
	}
	for i, n := range count {
		s.single = s.single || n == 1
		s.several = s.several || n > 1
		if n == 1 && !slices.Contains(s.files, first[i]) {
			s.files = append(s.files, first[i])
		}
	}
	return s
}

// Defining returns the files of the index that define a name (exacta §4.5 PS-1, §4.19).
func Defining(t Tree, name string) []string {
	var out []string
	for _, path := range t.Files() {
		content, err := t.Scan(path)
		if err == nil && defines(content, name) {
			out = append(out, path)
		}
	}
	return out
}

// keywords are what stands before a name where it is defined.
const keywords = " func class struct interface type def fn const var let function enum trait record "

// defines reports whether a file defines a name (exacta §4.19):
//
//	\b(func|class|…)\s+(\([^)\n]*\)\s*)?NAME\b
func defines(content []byte, name string) bool {
	for rest := 0; name != ""; {
		i := bytes.Index(content[rest:], []byte(name))
		if i < 0 {
			return false
		}
		i += rest
		rest = i + len(name)
		if (rest == len(content) || !wordByte(content[rest])) && defined(content[:i]) {
			return true
		}
		// A definition begins a word.
		for rest = i + 1; rest < len(content) && wordByte(content[rest]); rest++ {
		}
	}
	return false
}

// defined reports whether a name behind the text is defined there.
func defined(text []byte) bool {
	s := trimSpace(text)
	if len(s) < len(text) && endsInKeyword(s) {
		return true
	}
	if !bytes.HasSuffix(s, []byte{')'}) {
		return false
	}
	for i := len(s) - 2; i >= 0 && s[i] != ')' && s[i] != '\n'; i-- {
		if s[i] != '(' {
			continue
		}
		if k := trimSpace(s[:i]); len(k) < i && endsInKeyword(k) {
			return true
		}
	}
	return false
}

// endsInKeyword reports whether the last word of a text is a keyword.
func endsInKeyword(s []byte) bool {
	i := len(s)
	for i > 0 && len(s)-i < 10 && wordByte(s[i-1]) {
		i--
	}
	return has(keywords, string(s[i:]))
}

// trimSpace cuts what \s matches from the end.
func trimSpace(s []byte) []byte { return bytes.TrimRight(s, "\t\n\f\r ") }

func wordByte(c byte) bool { return letter(c) || digit(c) || c == '_' }

// isText reports whether a file can be edited (exacta §4.5 PV-11).
func isText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b[:min(len(b), 8<<10)], 0) < 0
}
