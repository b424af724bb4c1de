package planner

import (
	"bytes"
	"strings"
)

const bom = "\ufeff"

// part names an edit in the description of a step.
func (a action) part() string {
	switch a {
	case insertText:
		return "insert text"
	case appendText:
		return "append text"
	case prependText:
		return "prepend text"
	case replaceText:
		return "replace text"
	}
	return "remove lines"
}

// maxGrowth is how much larger than before a file may be after its edits. No diff may have that
// many bytes (exacta §4.16).
const maxGrowth = 1 << 20

// edit applies a form to the content of a file. reason is why it cannot; it is empty if it can.
func (f *form) edit(content []byte) (out []byte, reason string) {
	crlf := endsCRLF(content)
	mark, body := content[:0:0], content
	if rest, ok := bytes.CutPrefix(content, []byte(bom)); ok {
		mark, body = content[:len(bom):len(bom)], rest
	}
	switch f.do {
	case appendText:
		if n := len(body); n > 0 && body[n-1] != '\n' {
			content = append(content[:len(content):len(content)], newline(crlf)...)
		}
		return append(content[:len(content):len(content)], inserted(f.text, crlf)...), ""
	case prependText:
		return append(append(mark, inserted(f.text, crlf)...), body...), ""
	case replaceText:
		return f.replace(content, crlf)
	case removeLines:
		body, reason = removed(body, f.text)
	default:
		body, reason = f.insert(body, crlf)
	}
	return append(mark, body...), reason
}

// replace is edit for a replace.
func (f *form) replace(content []byte, crlf bool) (out []byte, reason string) {
	from, to := []byte(endings(f.text, crlf)), []byte(endings(f.with, crlf))
	if len(from) == 0 {
		return nil, "there is no text to replace"
	}
	n := bytes.Count(content, from)
	if n == 0 {
		return nil, "the text to replace was not found"
	}
	if len(to) > len(from) && n > maxGrowth/(len(to)-len(from)) {
		return nil, "the file would grow too much"
	}
	return bytes.ReplaceAll(content, from, to), ""
}

// insert is edit for an insert. The byte order mark is not part of body.
func (f *form) insert(body []byte, crlf bool) (out []byte, reason string) {
	start, end, ok := lineWith(body, strings.TrimSuffix(f.anchor, "\n"))
	if !ok {
		return nil, "the place of the insertion was not found"
	}
	at := start
	if f.after {
		at = end
	}
	out = append(out, body[:at]...)
	if f.after && body[end-1] != '\n' {
		out = append(out, newline(crlf)...)
	}
	return append(append(out, inserted(f.text, crlf)...), body[at:]...), ""
}

// removed returns body without the lines that contain text.
func removed(body []byte, text string) (out []byte, reason string) {
	text = strings.TrimSuffix(text, "\n")
	from := 0
	for from < len(body) {
		start, end, ok := lineWith(body[from:], text)
		if !ok {
			break
		}
		out = append(out, body[from:from+start]...)
		from += end
	}
	if from == 0 {
		return nil, "no line has the text to remove"
	}
	return append(out, body[from:]...), ""
}

// lineWith returns where the first line that contains text starts and ends, its newline included.
func lineWith(body []byte, text string) (start, end int, ok bool) {
	if text == "" || strings.Contains(text, "\n") {
		return 0, 0, false
	}
	at := bytes.Index(body, []byte(text))
	if at < 0 {
		return 0, 0, false
	}
	start = bytes.LastIndexByte(body[:at], '\n') + 1
	if end = bytes.IndexByte(body[at:], '\n'); end < 0 {
		return start, len(body), true
	}
	return start, at + end + 1, true
}

// endsCRLF reports whether the first line of a file ends in CRLF.
func endsCRLF(content []byte) bool {
	i := bytes.IndexByte(content, '\n')
	return i > 0 && content[i-1] == '\r'
}

func newline(crlf bool) string {
	if crlf {
		return "\r\n"
	}
	return "\n"
}

// inserted returns a text as whole lines with the endings of its file.
func inserted(text string, crlf bool) string {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return endings(text, crlf)
}

// endings returns a text with CRLF for its newlines if its file has them.
func endings(text string, crlf bool) string {
	if !crlf {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}
