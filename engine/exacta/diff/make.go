package diff

import (
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
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
