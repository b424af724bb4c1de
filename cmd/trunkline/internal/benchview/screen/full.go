package screen

import (
	"strconv"
	"strings"
)

// saved is what is kept of a screen while a program uses the other one.
type saved struct {
	rows     []string
	row, col int
}

// region are the rows that scroll, counted from that at the top; without a last one it is all.
type region struct{ first, last int }

// strings that begin with an escape and end with a bell or with an escape and a backslash, such as
// the title of a window.
const stringBegins = "]P_^X"

// whole does what stands at the front of text, if it is a command of a program that uses the whole
// screen, and returns its length; 0 if it is not whole, -1 if it is none.
func (s *Screen) whole(text string) int {
	if len(text) < 2 || text[0] != '\x1b' || text[1] == '[' {
		return -1
	}
	if !strings.ContainsRune(stringBegins, rune(text[1])) {
		if text[1] == 'M' {
			s.row = max(s.row-1, s.top())
		}
		return 2 // such as the one that has the keypad send numbers
	}
	for i := 2; i < len(text); i++ {
		if text[i] == '\a' {
			return i + 1
		}
		if text[i] == '\\' && text[i-1] == '\x1b' {
			return i + 1
		}
	}
	return 0
}

// addressed does a command that moves the cursor to a place, or changes what is right of it or
// below; false if it is none.
func (s *Screen) addressed(arg string, c byte) bool {
	first, second, _ := strings.Cut(arg, ";")
	n, _ := strconv.Atoi(first)
	m, _ := strconv.Atoi(second)
	n = max(n, 1)
	switch c {
	case 'H':
		s.row, s.col = s.top()+n-1, max(m, 1)-1
	case 'd':
		s.row = s.top() + n - 1
	case 'G', '`':
		s.col = n - 1
	case 'B', 'E':
		s.row += n
	case 'C':
		s.col += n
	case 'D':
		s.col = max(s.col-n, 0)
	case 'X':
		s.rows[s.row] = s.padded(s.col) + strings.Repeat(" ", n) + s.tail(s.rows[s.row], s.col+n)
	case 'P':
		s.rows[s.row] = s.padded(s.col) + s.tail(s.rows[s.row], s.col+n)
	case 'L', 'M', 'S', 'T':
		s.scroll(n, c)
	case 'r':
		s.scrolls = region{n - 1, m - 1}
		s.row, s.col = s.top(), 0
	case '@':
		s.rows[s.row] = s.padded(s.col) + strings.Repeat(" ", n) + s.tail(s.rows[s.row], s.col)
	default:
		return s.erased(arg, c)
	}
	s.reach()
	return true
}

// erased does a command that erases, or one that has no effect on what is seen.
func (s *Screen) erased(arg string, c byte) bool {
	switch {
	case c == 'K' && arg == "1":
		s.rows[s.row] = strings.Repeat(" ", s.col+1) + s.tail(s.rows[s.row], s.col+1)
	case c == 'K' && arg == "2":
		s.rows[s.row] = ""
	case c == 'J' && arg == "2" && s.other != nil:
		for i := s.top(); i < len(s.rows); i++ {
			s.rows[i] = ""
		}
	case arg == "?1049" && c == 'h':
		s.other = &saved{s.rows, s.row, s.col}
		s.rows, s.row, s.col = make([]string, s.height), 0, 0
	case arg == "?1049" && c == 'l' && s.other != nil:
		s.rows, s.row, s.col, s.other = s.other.rows, s.other.row, s.other.col, nil
	case strings.ContainsRune("hlupqctmW", rune(c)):
		// Modes of keys and of pasting, stops of tabs, and questions, which have no answer here.
	default:
		return false
	}
	return true
}

// scroll inserts (L, T) or deletes (M, S) n rows, at the cursor or at the first one that scrolls.
func (s *Screen) scroll(n int, c byte) {
	last := s.scrolls.last
	if last <= 0 {
		last = s.height - 1
	}
	first := s.row
	if c == 'S' || c == 'T' {
		first = s.top() + s.scrolls.first
	}
	last += s.top()
	for len(s.rows) <= last {
		s.rows = append(s.rows, "")
	}
	for range min(n, last-first+1) {
		if c == 'L' || c == 'T' {
			copy(s.rows[first+1:last+1], s.rows[first:last])
			s.rows[first] = ""
		} else {
			copy(s.rows[first:last], s.rows[first+1:last+1])
			s.rows[last] = ""
		}
	}
}

// padded is the row of the cursor up to column n.
func (s *Screen) padded(n int) string {
	before := s.cut(s.rows[s.row], n)
	return before + strings.Repeat(" ", max(n-s.cells(before), 0))
}

// reach adds rows down to that of the cursor.
func (s *Screen) reach() {
	for s.row >= len(s.rows) {
		s.rows = append(s.rows, "")
	}
}
