package diff

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// unquote returns a path as git writes it in a header: in double quotes, with escapes of C and the
// octal values of bytes, where it has more than printable ASCII. Another path is returned as it is.
func unquote(path string) (string, bool) {
	if !strings.HasPrefix(path, `"`) {
		return path, true
	}
	plain := strings.ReplaceAll(path, `\\`, "")
	for _, of := range [...]string{`\x`, `\u`, `\U`} { // escapes of Go that git has not
		if strings.Contains(plain, of) {
			return "", false
		}
	}
	path, err := strconv.Unquote(path)
	return path, err == nil && utf8.ValidString(path)
}

// Piece is what a diff of several files does to one of them.
type Piece struct {
	Text string // in the form of exacta §4.16
	Line int    // of the whole diff: that of the first line of Text

	// From and To are set for a renamed or copied file, whose content is not in the diff. Text is
	// about From then, or NoChanges; From goes unless Copy is set.
	From, To string
	Copy     bool
}

// outside are starts of lines outside of hunks that stand for a change without a unified diff.
var outside = []struct{ prefix, token string }{
	{"diff --cc ", "combined"},
	{"diff --combined ", "combined"},
	{"* Unmerged path ", "combined"},
	{"Binary files ", "binary_diff"},
	{"GIT binary patch", "binary_diff"},
	{"Submodule ", "submodule"},
	{"old mode ", "mode"},
	{"Only in ", "one_side"},
	{"```", "fence"},
	{"@@ ", "header"},
}

// Split splits the output of git diff, git show, git format-patch or diff -u into pieces for one
// file each, and cuts what the form of exacta §4.16 does not have: header lines of git, messages of
// commits, prefixes other than a/ and b/. It refuses changes that this form cannot express; all
// others are for Parse. A text without a file is one piece.
func Split(text string) ([]Piece, *Problem) {
	var out []Piece
	s := &scanner{rest: text}
	message := false // of a commit, in which any line is possible
	for !s.atEnd() {
		line, rest, _ := strings.Cut(s.rest, "\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			message = false
			piece, bad := s.gitFile()
			if bad != nil {
				return nil, bad
			}
			if piece.Text != "" {
				out = append(out, piece)
			}
		case strings.HasPrefix(line, "--- ") && strings.HasPrefix(rest, "+++ "):
			whole, at := s.rest, s.n+1
			s.next()
			s.next()
			s.hunks()
			out = append(out, Piece{Text: whole[:len(whole)-len(s.rest)], Line: at})
		default:
			s.next()
			message = message || strings.HasPrefix(line, "From ") || strings.HasPrefix(line, "commit ")
			for _, o := range outside {
				if !message && strings.HasPrefix(line, o.prefix) {
					return nil, atLine(o.token, s.n)
				}
			}
		}
	}
	if out == nil {
		out = []Piece{{Text: text, Line: 1}}
	}
	return out, nil
}

// hunks reads all hunks that come next, by the counts in their headers, and lines after them that
// can only be meant as part of them.
func (s *scanner) hunks() {
	for !s.atEnd() {
		line, rest, _ := strings.Cut(s.rest, "\n")
		f := gitdiff.TextFragment{}
		switch {
		case parseHunkHeader(line, &f):
			s.next()
		case line == "" || line == "-- " || strings.IndexByte(" +-\\@", line[0]) < 0, strings.HasPrefix(line, "--- ") && strings.HasPrefix(rest, "+++ "):
			return
		default:
			s.next()
		}
		for (f.OldLines > 0 || f.NewLines > 0) && !s.atEnd() && strings.IndexByte("\n +-\\", s.rest[0]) >= 0 {
			mark := s.rest[0]
			s.next()
			if mark != '+' && mark != '\\' {
				f.OldLines--
			}
			if mark != '-' && mark != '\\' {
				f.NewLines--
			}
		}
	}
}

// gitFile reads one file of git: its header lines and hunks. The piece of one that does not change
// has no text. It stops at a line that it does not know.
func (s *scanner) gitFile() (Piece, *Problem) {
	x, y := gitNames(s.next()[len("diff --git "):])
	p := Piece{Line: s.n}
	from, to, hunks := x, y, ""
	for more := true; more; {
		line, rest, _ := strings.Cut(s.rest, "\n")
		key, value, _ := strings.Cut(line, " ")
		second, name, _ := strings.Cut(value, " ")
		switch {
		case key == "rename" || key == "copy":
			p.Copy = key == "copy"
			if path, ok := unquote(name); !ok {
				return p, atLine("quoted_path", s.n+1)
			} else if second == "from" {
				p.From = path
			} else {
				p.To = path
			}
		case strings.HasPrefix(line, "deleted file mode "):
			to = devNull
		case strings.HasPrefix(line, "new file mode "):
			if from = devNull; line != "new file mode 100644" {
				return p, atLine("mode", s.n+1)
			}
		case key == "---" && strings.HasPrefix(rest, "+++ "):
			from, _ = headerPath(s, "--- ")
			to, _ = headerPath(s, "+++ ")
			p.Line = s.n - 1
			before := s.rest
			s.hunks()
			hunks, more = before[:len(before)-len(s.rest)], false
			continue
		case key != "index" && key != "similarity" && key != "dissimilarity":
			more = false
			continue
		}
		s.next()
	}
	return p, p.write(from, to, hunks, x == y)
}

// gitNames returns the paths of the line "diff --git X Y". Without quotes the place between them is
// where both are the same behind their prefixes; it is needed only where they are.
func gitNames(text string) (x, y string) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		return quoted, strings.TrimPrefix(text[len(quoted):], " ")
	}
	for i := range len(text) {
		if text[i] == ' ' && text[strings.IndexByte(text[:i], '/')+1:i] == text[i+2+strings.IndexByte(text[i+1:], '/'):] {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// write makes the text of a piece. bare paths have no prefix.
func (p *Piece) write(from, to, hunks string, bare bool) *Problem {
	renamed := p.From != "" && p.To != ""
	switch {
	case p.From+p.To != "" && !renamed:
		return atLine("header", p.Line)
	case renamed && (ofPath(p.From) != nil || ofPath(p.To) != nil):
		return cmp.Or(ofPath(p.From), ofPath(p.To))
	case hunks == "" && renamed:
		p.Text = NoChanges
		return nil
	case hunks == "" && from != devNull && to != devNull:
		return nil
	}
	var b strings.Builder
	for _, side := range [...]struct{ sign, prefix, path string }{{"--- ", "a/", from}, {"+++ ", "b/", to}} {
		path, ok := unquote(side.path)
		if !ok {
			return atLine("quoted_path", p.Line)
		}
		switch {
		case renamed:
			path = side.prefix + p.From
		case side.path != devNull:
			if !bare {
				if _, path, ok = strings.Cut(path, "/"); !ok {
					return atLine("header", p.Line)
				}
			}
			path = side.prefix + path
		}
		if strings.ContainsFunc(path, unicode.IsControl) { // a TAB would end it
			path = strconv.Quote(path)
		}
		b.WriteString(side.sign + path + "\n")
	}
	p.Text = b.String() + hunks
	return nil
}
