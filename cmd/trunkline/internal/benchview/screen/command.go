package screen

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// take does what stands at the front of text and returns its length, 0 if it is not whole.
func (s *Screen) take(text string) int {
	const escape = "\x1b["
	switch {
	case strings.HasPrefix(text, escape):
		end := strings.IndexFunc(text[len(escape):], func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return 0
		}
		end += len(escape)
		s.command(text[len(escape):end], text[end])
		return end + 1
	case strings.HasPrefix(escape, text), !utf8.FullRuneInString(text):
		return 0
	}
	r, n := utf8.DecodeRuneInString(text)
	s.put(r)
	return n
}

func (s *Screen) command(arg string, c byte) {
	switch n, _ := strconv.Atoi(arg); {
	case c == 'A':
		s.row = max(s.row-max(n, 1), s.top())
	case c == 'K' && arg == "":
		s.rows[s.row] = s.cut(s.rows[s.row], s.col)
	case c == 'J' && arg == "":
		if s.row == s.top() && s.col == 0 {
			s.t.Error("the screen is erased from its first cell on: some terminals keep a copy of it")
		}
		s.rows[s.row] = s.cut(s.rows[s.row], s.col)
		s.rows = s.rows[:s.row+1]
	case c == 'm':
		s.attributes++
	case arg == "?7":
		s.wrap = c == 'h'
	case arg == "?25":
		s.cursor = c == 'h'
	case arg == "?2026":
	default:
		s.t.Errorf("unknown command %q", arg+string(c))
	}
}

func (s *Screen) put(r rune) {
	switch r {
	case '\r':
		s.col = 0
	case '\n':
		s.row++
		if s.row == len(s.rows) {
			s.rows = append(s.rows, "")
		}
	default:
		if r < ' ' {
			s.t.Errorf("control character %q", r)
		}
		line, width := s.rows[s.row], s.cells(string(r))
		before := s.cut(line, s.col)
		before += strings.Repeat(" ", max(s.col-s.cells(before), 0))
		s.rows[s.row] = before + string(r) + s.tail(line, s.col+width)
		s.col += width
		if s.col > s.width {
			s.overflow++
		}
	}
}

// top is the first row that is not scrolled away.
func (s *Screen) top() int { return max(len(s.rows)-s.height, 0) }

// cut is the first n cells of a line, tail what comes after them.
func (s *Screen) cut(line string, n int) string {
	for i, r := range line {
		if n -= s.cells(string(r)); n < 0 {
			return line[:i]
		}
	}
	return line
}

func (s *Screen) tail(line string, n int) string { return strings.TrimPrefix(line, s.cut(line, n)) }
