package benchview

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// screen is a small model of a terminal: rows of cells, a cursor, and what Live says to it. It fails the test on anything else.
type screen struct {
	t             *testing.T
	mu            sync.Mutex // the test turns the knobs while Live paints
	width, height int
	reflows       bool     // long lines wrap again when it becomes narrower
	rows          []string // all lines since it was opened, those scrolled away included
	row, col      int
	wrap, cursor  bool
	attributes    int // how often text attributes were set
	overflow      int // characters beyond the right edge
	frames        int
}

func newScreen(t *testing.T, width, height int) *screen {
	return &screen{t: t, width: width, height: height, reflows: true, rows: []string{""}, wrap: true, cursor: true}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	text := string(b)
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			s.command(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r := []rune(text)[0]
		s.put(r)
		text = text[len(string(r)):]
	}
	return len(b), nil
}

func (s *screen) command(arg string, c byte) {
	switch n, _ := strconv.Atoi(arg); {
	case c == 'A':
		s.row = max(s.row-max(n, 1), s.top())
	case c == 'K' && arg == "":
		s.rows[s.row] = cutCells(s.rows[s.row], s.col)
	case c == 'J' && arg == "":
		s.rows[s.row] = cutCells(s.rows[s.row], s.col)
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

func (s *screen) put(r rune) {
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
		line := s.rows[s.row]
		line = padRight(cutCells(line, s.col), s.col) + string(r) + tailCells(line, s.col+cells(string(r)))
		s.rows[s.row] = line
		s.col += cells(string(r))
		if s.col > s.width {
			s.overflow++
		}
	}
}

// columns is what a terminal tells of its width.
func (s *screen) columns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width
}

// top is the first row that is not scrolled away.
func (s *screen) top() int { return max(len(s.rows)-s.height, 0) }

// resize changes the width; the rows that are too long wrap or are cut.
func (s *screen) resize(width int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width = width
	var rows []string
	for i, row := range s.rows {
		if i == s.row {
			s.row = len(rows)
		}
		for s.reflows && cells(row) > width {
			rows = append(rows, cutCells(row, width))
			row = tailCells(row, width)
		}
		rows = append(rows, cutCells(row, width))
	}
	s.rows = rows
}

// shown is what one sees, without blanks at the ends of lines.
func (s *screen) shown() string {
	var b strings.Builder
	for _, row := range s.rows[s.top():] {
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return b.String()
}

// cutCells is the first n cells of a line, tailCells what comes after them.
func cutCells(line string, n int) string {
	for i, r := range line {
		if n -= cells(string(r)); n < 0 {
			return line[:i]
		}
	}
	return line
}

func tailCells(line string, n int) string { return strings.TrimPrefix(line, cutCells(line, n)) }
