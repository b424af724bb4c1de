// Package diff reads, checks, applies and makes unified diffs of one file (exacta §4.16). It works
// on text and on the bytes of one file; it opens nothing.
//
//	--- a/README.md          or /dev/null: the file is created
//	+++ b/README.md          or /dev/null: the file is deleted
//	@@ -1,3 +1,4 @@          hunks, in the order of the file; none for an empty file
//	 # Demo                  context
//	-Hello.                  of the old side only
//	+Hi.                     of the new side only
//	\ No newline at end of file
//
// Parse applies rules 1 to 5 in the order of the contract, Apply what rule 7 demands of the
// content. Rule 6 is between them and is not here: it looks at the disk and at secrets. A refusal
// is a Problem: the code of the error, the token of the rule, and where.
//
// A diff fits at its line numbers and nowhere else, byte for byte. The numbers of a side without
// lines name the line before the change, as diff and git write them.
package diff

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/relpath"
)

// Make returns the diff from old to new of the file at path, in the form that the server sends
// (exacta §4.16, end): three lines of context, prefixes a/ and b/, both counts in each header,
// deletions before insertions. nil stands for a file that does not exist. Equal contents give
// NoChanges. Equal arguments give equal bytes.
//
// Parse refuses the result where the content breaks rule 1, such as NUL, ESC[ or too many bytes.
func Make(path string, old, new []byte) string {
	if (old == nil) == (new == nil) && string(old) == string(new) {
		return NoChanges
	}
	var b strings.Builder
	writeSide(&b, "--- ", "a/", path, old)
	writeSide(&b, "+++ ", "b/", path, new)
	from, to := splitLines(string(old)), splitLines(string(new))
	edits := merge(lcs.DiffLines(from, to))
	moved := 0 // lines inserted less lines deleted, by the edits before
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].Start-edits[n-1].End <= 2*contextLines {
			n++
		}
		moved += writeHunk(&b, from, to, edits[:n], moved)
		edits = edits[n:]
	}
	return b.String()
}

func writeSide(b *strings.Builder, sign, prefix, path string, content []byte) {
	b.WriteString(sign)
	if content == nil {
		b.WriteString(devNull)
	} else {
		b.WriteString(prefix)
		b.WriteString(path)
	}
	b.WriteByte('\n')
}

// splitLines splits text behind each newline.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// merge joins edits without a line between them, so that their deletions precede their
// insertions.
func merge(edits []lcs.Diff) []lcs.Diff {
	var out []lcs.Diff
	for _, e := range edits {
		if n := len(out); n > 0 && out[n-1].End == e.Start {
			out[n-1].End, out[n-1].ReplEnd = e.End, e.ReplEnd
			continue
		}
		out = append(out, e)
	}
	return out
}

// writeHunk writes the hunk of edits, which are close to each other, and returns by how many lines
// it makes the file longer.
func writeHunk(b *strings.Builder, from, to []string, edits []lcs.Diff, moved int) (grown int) {
	start := max(0, edits[0].Start-contextLines)
	end := min(len(from), edits[len(edits)-1].End+contextLines)
	for _, e := range edits {
		grown += (e.ReplEnd - e.ReplStart) - (e.End - e.Start)
	}
	b.WriteString("@@ -")
	writeRange(b, start, end-start)
	b.WriteString(" +")
	writeRange(b, start+moved, end-start+grown)
	b.WriteString(" @@\n")
	next := start
	for _, e := range edits {
		writeLines(b, ' ', from[next:e.Start])
		writeLines(b, '-', from[e.Start:e.End])
		writeLines(b, '+', to[e.ReplStart:e.ReplEnd])
		next = e.End
	}
	writeLines(b, ' ', from[next:end])
	return grown
}

// writeRange writes where a side of a hunk starts, an index, and its number of lines. A side
// without lines has the number of the line before it.
func writeRange(b *strings.Builder, start, lines int) {
	if lines > 0 {
		start++
	}
	b.WriteString(strconv.Itoa(start))
	b.WriteByte(',')
	b.WriteString(strconv.Itoa(lines))
}

func writeLines(b *strings.Builder, sign byte, lines []string) {
	for _, l := range lines {
		b.WriteByte(sign)
		b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n" + noNewline + "\n")
		}
	}
}

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
func (p *Problem) Fault(prefix string) *errcode.Fault {
	return errcode.New(p.Code, prefix+p.Token+": "+p.Text, p.Text)
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
