package diff

import (
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// noNewline is the line that marks the line before it (exacta §4.16 rule 5).
const noNewline = `\ No newline at end of file`

// readHunk reads one hunk: a header and as many lines as it declares.
func (p *Patch) readHunk(lines *scanner) *Problem {
	if p.afterHunk(lines) {
		// The line belongs to the hunk before, which declared fewer lines.
		return atLine("hunk_count", lines.n+1)
	}
	header := lines.next()
	h := hunk{line: lines.n}
	f := &h.fragment
	if !parseHunkHeader(header, f) {
		if strings.HasPrefix(header, "--- ") && lines.hasPrefix("+++ ") {
			return atLine("multi_file", lines.n)
		}
		return atLine("hunk_header", lines.n)
	}
	oldLeft, newLeft := f.OldLines, f.NewLines
	for oldLeft > 0 || newLeft > 0 {
		if lines.atEnd() {
			return atLine("hunk_count", h.line)
		}
		text := lines.rest
		line := lines.next()
		op, ok := opOf(line)
		switch {
		case line == noNewline:
			h.mark(lines.n)
			continue
		case !ok && parseHunkHeader(line, new(gitdiff.TextFragment)):
			return atLine("hunk_count", h.line)
		case !ok:
			return atLine("hunk_line", lines.n)
		}
		l := gitdiff.Line{Op: op, Line: text[1 : len(line)+1]}
		if l.Old() {
			oldLeft--
		}
		if l.New() {
			newLeft--
		}
		if oldLeft < 0 || newLeft < 0 {
			return atLine("hunk_count", h.line)
		}
		h.add(l)
	}
	for lines.hasPrefix(noNewline + "\n") {
		lines.next()
		h.mark(lines.n)
	}
	p.hunks = append(p.hunks, h)
	return nil
}

// afterHunk reports whether the next line is a line of a hunk where a header is expected. A pair
// of --- and +++ is not: it starts another file.
func (p *Patch) afterHunk(lines *scanner) bool {
	if len(p.hunks) == 0 {
		return false
	}
	first, rest, _ := strings.Cut(lines.rest, "\n")
	if strings.HasPrefix(first, "--- ") && strings.HasPrefix(rest, "+++ ") {
		return false
	}
	_, ok := opOf(first)
	return ok
}

func opOf(line string) (op gitdiff.LineOp, ok bool) {
	if line == "" {
		return 0, false
	}
	switch line[0] {
	case ' ':
		return gitdiff.OpContext, true
	case '-':
		return gitdiff.OpDelete, true
	case '+':
		return gitdiff.OpAdd, true
	}
	return 0, false
}

// add appends a line and keeps the counts that go-gitdiff wants.
func (h *hunk) add(l gitdiff.Line) {
	if h.oldEnds > 0 && l.Old() {
		h.misplace(h.oldEnds)
	}
	if h.newEnds > 0 && l.New() {
		h.misplace(h.newEnds)
	}
	f := &h.fragment
	f.Lines = append(f.Lines, l)
	switch l.Op {
	case gitdiff.OpAdd:
		f.LinesAdded++
		f.TrailingContext = 0
	case gitdiff.OpDelete:
		f.LinesDeleted++
		f.TrailingContext = 0
	case gitdiff.OpContext:
		if f.LinesAdded == 0 && f.LinesDeleted == 0 {
			f.LeadingContext++
		} else {
			f.TrailingContext++
		}
	}
}

// mark applies the marker in line n of the diff to the line before it.
func (h *hunk) mark(n int) {
	count := len(h.fragment.Lines)
	if count == 0 || h.fragment.Lines[count-1].NoEOL() {
		h.misplace(n)
		return
	}
	l := &h.fragment.Lines[count-1]
	l.Line = l.Line[:len(l.Line)-1]
	if l.Old() {
		h.oldEnds = n
	}
	if l.New() {
		h.newEnds = n
	}
}

// misplace notes that the marker in line n of the diff is illegal.
func (h *hunk) misplace(n int) {
	if h.stray == 0 || n < h.stray {
		h.stray = n
	}
}

// parseHunkHeader reads "@@ -l[,c] +l[,c] @@[ text]" into f.
func parseHunkHeader(line string, f *gitdiff.TextFragment) bool {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return false
	}
	if f.OldPosition, f.OldLines, rest, ok = parseRange(rest); !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, " +"); !ok {
		return false
	}
	if f.NewPosition, f.NewLines, rest, ok = parseRange(rest); !ok {
		return false
	}
	rest, ok = strings.CutPrefix(rest, " @@")
	return ok && (rest == "" || rest[0] == ' ')
}

// parseRange reads "l" or "l,c". Without c the side has one line.
func parseRange(s string) (position, lines int64, rest string, ok bool) {
	if position, s, ok = parseNumber(s); !ok {
		return 0, 0, "", false
	}
	after, more := strings.CutPrefix(s, ",")
	if !more {
		return position, 1, s, true
	}
	lines, rest, ok = parseNumber(after)
	return position, lines, rest, ok
}

// maxDigits keeps numbers and their sums in an int64. No file has a line of a longer number.
const maxDigits = 15

func parseNumber(s string) (n int64, rest string, ok bool) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		n = n*10 + int64(s[i]-'0')
		if i++; i > maxDigits {
			return 0, "", false
		}
	}
	return n, s[i:], i > 0
}

// checkHunks applies what rule 5 demands of whole hunks, in its order.
func (p *Patch) checkHunks() *Problem {
	for i := range p.hunks {
		if f := &p.hunks[i].fragment; f.LinesAdded == 0 && f.LinesDeleted == 0 {
			return atLine("hunk_empty", p.hunks[i].line)
		}
	}
	if bad := p.checkShape(); bad != nil {
		return bad
	}
	for i := 1; i < len(p.hunks); i++ {
		before := &p.hunks[i-1]
		if p.hunks[i].oldStart() < before.oldStart()+before.fragment.OldLines {
			return atLine("hunk_order", p.hunks[i].line)
		}
	}
	var delta int64
	for i := range p.hunks {
		h := &p.hunks[i]
		if h.oldStart() < 0 || h.newStart() != h.oldStart()+delta {
			return atLine("hunk_position", h.line)
		}
		delta += h.fragment.NewLines - h.fragment.OldLines
	}
	return p.checkMarkers()
}

// checkShape applies the rules of each operation.
func (p *Patch) checkShape() *Problem {
	switch p.Op {
	case Modify:
		if len(p.hunks) == 0 {
			return atLine("no_hunks", p.Lines)
		}
	case Create:
		if len(p.hunks) > 1 {
			return atLine("create_shape", p.hunks[1].line)
		}
		for i := range p.hunks {
			if f := &p.hunks[i].fragment; f.OldPosition != 0 || f.OldLines != 0 {
				return atLine("create_shape", p.hunks[i].line)
			}
		}
	case Delete:
		if len(p.hunks) > 1 {
			return atLine("delete_shape", p.hunks[1].line)
		}
		for i := range p.hunks {
			if f := &p.hunks[i].fragment; f.NewPosition != 0 || f.NewLines != 0 {
				return atLine("delete_shape", p.hunks[i].line)
			}
		}
	}
	return nil
}

// checkMarkers tests that a line without a newline is the last one of its side.
func (p *Patch) checkMarkers() *Problem {
	oldEnds, newEnds := 0, 0
	for i := range p.hunks {
		h := &p.hunks[i]
		switch {
		case oldEnds > 0 && h.fragment.OldLines > 0:
			return atLine("no_newline_marker", oldEnds)
		case newEnds > 0 && h.fragment.NewLines > 0:
			return atLine("no_newline_marker", newEnds)
		case h.stray > 0:
			return atLine("no_newline_marker", h.stray)
		}
		oldEnds, newEnds = max(oldEnds, h.oldEnds), max(newEnds, h.newEnds)
	}
	return nil
}
