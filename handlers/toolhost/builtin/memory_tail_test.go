package builtin

import (
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tailModel returns the lines of the last limit bytes of text, last one first, as the simplest
// program would.
func tailModel(text string, limit int64) (lines []string, torn bool) {
	start := max(int64(len(text))-limit, 0)
	part := text[start:]
	if start > 0 && text[start-1] != '\n' {
		_, part, _ = strings.Cut(part, "\n")
	}
	torn = part != "" && !strings.HasSuffix(part, "\n")
	for line := range strings.Lines(part) {
		lines = append([]string{strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")}, lines...)
	}
	return lines, torn
}

// wantTail reads text backward and compares with the model.
func wantTail(t rapid.TB, text string, limit int64) {
	want, torn := tailModel(text, limit)
	lines, err := newTail(strings.NewReader(text), int64(len(text)), limit)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		line, ok, err := lines.next()
		if !ok || err != nil || string(line) != w {
			t.Fatalf("line %d from the end: got %.60q %v %v, want %.60q", i, line, ok, err, w)
		}
		if lines.torn != (torn && i == 0) {
			t.Fatalf("line %d from the end: torn is %v", i, lines.torn)
		}
		if rest := text[lines.at:]; !strings.HasPrefix(rest, w) {
			t.Fatalf("line %d from the end: said to be at %d", i, lines.at)
		}
	}
	for range 2 {
		if line, ok, err := lines.next(); ok || err != nil {
			t.Fatalf("got %.60q %v behind the last line", line, err)
		}
	}
}

func TestTail(t *testing.T) {
	f := func(text string) {
		t.Helper()
		for limit := range int64(len(text) + 2) {
			wantTail(t, text, limit)
		}
	}
	f("")
	f("\n")
	f("\r\n")
	f("\n\n\n")
	f("a")
	f("ab\n")
	f("ab\r\ncd\n\n\r\nef")
	f("\nab\n")
}

func TestTailModel(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(0, 10), rapid.SampledFrom([]int{tailChunk - 1, tailChunk, tailChunk + 1, 3 * tailChunk}))
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for i := range rapid.IntRange(0, 8).Draw(t, "lines") {
			text.WriteString(strings.Repeat(string(rune('a'+i)), size.Draw(t, "size")))
			text.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "end"))
		}
		if rapid.Bool().Draw(t, "torn") {
			text.WriteString("torn")
		}
		wantTail(t, text.String(), int64(rapid.IntRange(0, text.Len()+1).Draw(t, "limit")))
	})
}

// TestTailLongLine: a line over maxLine is left out, wherever it stands, and what is held stays
// bounded.
func TestTailLongLine(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		lines, err := newTail(strings.NewReader(text), int64(len(text)), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for {
			line, ok, err := lines.next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got += string(line[:min(3, len(line))]) + " "
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(lines.buf) > 4*maxLine {
			t.Errorf("the buffer grew to %d bytes", len(lines.buf))
		}
	}
	most := strings.Repeat("x", maxLine)
	f("a\n"+most+"\nb\n", "b xxx a ")
	f("a\n"+most+"x\nb\n", "b a ")
	f(most+"x\nb\n", "b ")
	f("a\n"+most+"x", "a ")
	f("a\n"+most+most+most+"\nb", "b a ")
}

// shortened is a file of which nothing is left from some offset on.
type shortened struct {
	io.ReaderAt
	left int64
}

func (s shortened) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.left {
		return 0, io.EOF
	}
	n, err := s.ReaderAt.ReadAt(b[:min(int64(len(b)), s.left-off)], off)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

func TestTailOfShortenedFile(t *testing.T) {
	for left := range int64(9) {
		lines, err := newTail(shortened{strings.NewReader("ab\ncd\nef\n"), left}, 9, 7)
		if err != nil {
			t.Fatal(err)
		}
		if line, ok, err := lines.next(); ok || err != nil {
			t.Errorf("%d bytes left: got %q, %v", left, line, err)
		}
	}
}
