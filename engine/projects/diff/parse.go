package diff

import (
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// MaxBytes is the longest diff (exacta §6.1).
const MaxBytes = 102400

// NoChanges is the text of a diff that changes nothing (exacta §4.16).
const NoChanges = "NO_CHANGES_REQUIRED"

const devNull = "/dev/null"

// Op is what a patch does to its file.
type Op uint8

// The operations. Their names are those of manifests (exacta §4.18).
const (
	None Op = iota // NoChanges: there is no file
	Create
	Modify
	Delete
)

// String returns the name of the operation.
func (o Op) String() string { return [...]string{"none", "create", "modify", "delete"}[o] }

// Patch is a diff that Parse accepted. It does not change; any number of goroutines may apply it.
type Patch struct {
	Op    Op
	Path  string // safe (exacta §4.16 rule 4); empty for None
	Lines int    // of the text of the diff, its headers included

	hunks []hunk
}

// Parse checks text by rules 1 to 5 of exacta §4.16 in their order and returns the patch, or the
// first rule that it breaks.
func Parse(text string) (*Patch, *Problem) {
	if text == NoChanges {
		return &Patch{Op: None, Lines: 1}, nil
	}
	if bad := checkText(text); bad != nil {
		return nil, bad
	}
	p := &Patch{Lines: strings.Count(text, "\n")}
	lines := &scanner{rest: text}
	if bad := p.readHeader(lines); bad != nil {
		return nil, bad
	}
	for !lines.atEnd() {
		bad := p.readHunk(lines)
		if bad != nil {
			return nil, bad
		}
	}
	if bad := p.checkHunks(); bad != nil {
		return nil, bad
	}
	return p, nil
}

// checkText applies rule 1.
func checkText(text string) *Problem {
	refuse := func(token, text string) *Problem { return &Problem{invalid, token, text} }
	switch {
	case len(text) > MaxBytes:
		return refuse("too_large", strconv.Itoa(len(text))+" bytes")
	case text == "":
		return refuse("empty", "0 bytes")
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return atLine("nul", lineAt(text, i))
	}
	if i := strings.Index(text, "\x1b["); i >= 0 {
		return atLine("ansi", lineAt(text, i))
	}
	if strings.HasPrefix(text, "```") {
		return atLine("fence", 1)
	}
	if i := strings.Index(text, "\n```"); i >= 0 {
		return atLine("fence", lineAt(text, i+1))
	}
	if text[len(text)-1] != '\n' {
		return atLine("trailing_newline", lineAt(text, len(text)))
	}
	return nil
}

// lineAt returns the number of the line of the byte at offset i.
func lineAt(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }

// scanner gives the lines of a text that ends with a newline.
type scanner struct {
	rest string
	n    int // of the line that next returned last, from 1
}

func (s *scanner) atEnd() bool { return s.rest == "" }

// next returns the next line, without its newline.
func (s *scanner) next() string {
	line, rest, _ := strings.Cut(s.rest, "\n")
	s.rest = rest
	s.n++
	return line
}

// hasPrefix reports whether the line that comes next starts with prefix.
func (s *scanner) hasPrefix(prefix string) bool { return strings.HasPrefix(s.rest, prefix) }

// foreign are starts of the first line of other formats (exacta §4.16 rule 2).
var foreign = []struct{ prefix, token string }{
	{"diff --git ", "git_header"},
	{"diff --combined", "git_header"},
	{"diff --cc", "git_header"},
	{"Index: ", "git_header"},
	{"index ", "git_header"},
	{"GIT binary", "git_header"},
	{"Binary files", "git_header"},
	{"@@@", "git_header"},
	{"*** ", "context_diff"},
}

// readHeader applies rules 2 to 4.
func (p *Patch) readHeader(lines *scanner) *Problem {
	for _, f := range foreign {
		if lines.hasPrefix(f.prefix) {
			return atLine(f.token, 1)
		}
	}
	from, ok := headerPath(lines, "--- ")
	if !ok {
		return atLine("header", 1)
	}
	to, ok := headerPath(lines, "+++ ")
	if !ok {
		return atLine("header", 2)
	}
	if from == devNull && to == devNull {
		return atLine("header", 2)
	}
	p.Op = Modify
	var bad *Problem
	if from == devNull {
		p.Op = Create
	} else if from, bad = trimSide(from, "a/", 1); bad != nil {
		return bad
	}
	if to == devNull {
		p.Op = Delete
	} else if to, bad = trimSide(to, "b/", 2); bad != nil {
		return bad
	}
	if p.Op == Modify && from != to {
		return &Problem{invalid, "rename", shown(from) + " → " + shown(to)}
	}
	p.Path = to
	if p.Op == Delete {
		p.Path = from
	}
	return ofPath(p.Path)
}

// headerPath returns what a header line holds between prefix and a TAB.
func headerPath(lines *scanner, prefix string) (path string, ok bool) {
	if !lines.hasPrefix(prefix) {
		return "", false
	}
	path, _, _ = strings.Cut(lines.next()[len(prefix):], "\t")
	return path, true
}

// trimSide unquotes the path of a side and removes its prefix. A path without the prefix is refused
// for what it is first.
func trimSide(path, prefix string, line int) (string, *Problem) {
	path, ok := unquote(path)
	if !ok {
		return "", atLine("quoted_path", line)
	}
	rest, ok := strings.CutPrefix(path, prefix)
	if ok {
		return rest, nil
	}
	if bad := ofPath(path); bad != nil {
		return "", bad
	}
	return "", atLine("header", line)
}

// hunk is one hunk, with the lines that go-gitdiff applies. Its numbers are those of lines of the
// diff, 0 if there is no such line.
type hunk struct {
	fragment gitdiff.TextFragment
	line     int // of its header
	stray    int // the first marker that is not at the end of a side
	oldEnds  int // the marker of the last line of the old side
	newEnds  int // the marker of the last line of the new side
}

// oldStart returns the index of the first line of the file that the hunk covers.
func (h *hunk) oldStart() int64 { return offset(h.fragment.OldPosition, h.fragment.OldLines) }

// newStart returns the index of its first line in the new file.
func (h *hunk) newStart() int64 { return offset(h.fragment.NewPosition, h.fragment.NewLines) }

// offset turns the number of a header into an index. A side without lines has the number of the
// line before it.
func offset(position, lines int64) int64 {
	if lines == 0 {
		return position
	}
	return position - 1
}
