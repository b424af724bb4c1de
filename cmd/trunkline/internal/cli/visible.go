package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns text as it can be shown to people: what a terminal would obey, what would change
// the order of letters, and bytes that are no UTF-8 are written as escapes. Text of other clients,
// of files and of servers may have any of it.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for i, n := 0, 0; i < len(text); i += n {
		r := rune(0)
		switch r, n = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case hidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// VisibleLines is Visible for text of several lines.
func VisibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Visible(lines[i])
	}
	return strings.Join(lines, "\n")
}

func hidden(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }

// Write writes text to w as it is; a terminal gets VisibleLines of it.
func Write(w io.Writer, text string) error {
	if IsTerminal(w) {
		text = VisibleLines(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// Escaping is a writer of text that does as Write does.
type Escaping struct{ W io.Writer }

// Write implements io.Writer.
func (e Escaping) Write(p []byte) (int, error) { return len(p), Write(e.W, string(p)) }

// IsTerminal separates people from pipes and files: whether one of the standard streams is a
// character device, but not the one that stands for nothing.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
