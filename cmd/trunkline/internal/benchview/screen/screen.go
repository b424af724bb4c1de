// Package screen is a small model of a terminal for the tests of what is painted on one: rows of
// cells, a cursor, and the few commands that a block of lines repainted in place and a program that
// uses the whole screen need. A command that it does not know fails the test.
package screen

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Screen is a terminal. Its methods may be called from any goroutine.
type Screen struct {
	t     testing.TB
	cells func(string) int // width of a text

	mu            sync.Mutex
	width, height int
	reflows       bool
	pending       string   // the beginning of a command or of a character
	rows          []string // all lines since it was opened, those scrolled away included
	row, col      int
	wrap, cursor  bool
	attributes    int
	overflow      int
	frames        int
	other         *saved // while a program uses the whole screen
	scrolls       region
}

// New returns an empty screen whose long lines wrap again when it becomes narrower, as terminals in
// use today do. cells returns how many columns a text takes.
func New(t testing.TB, width, height int, cells func(string) int) *Screen {
	return &Screen{t: t, cells: cells, width: width, height: height, reflows: true, rows: []string{""}, wrap: true, cursor: true}
}

// CutLongLines makes it a terminal that cuts long lines when it becomes narrower.
func (s *Screen) CutLongLines() { s.reflows = false }

// Write takes what a program sends to the terminal.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	s.pending += string(b)
	for {
		n := s.take(s.pending)
		if n == 0 {
			return len(b), nil
		}
		s.pending = s.pending[n:]
	}
}

// Size is what a terminal reports as its size.
func (s *Screen) Size() (columns, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

// Resize changes the size. Rows that are too long wrap or are cut; where there are fewer rows,
// those at the top scroll away.
func (s *Screen) Resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width, s.height = width, height
	reflows := s.reflows && s.other == nil
	var rows []string
	for i, row := range s.rows {
		if i == s.row {
			s.row = len(rows)
		}
		for reflows && s.cells(row) > width {
			rows = append(rows, s.cut(row, width))
			row = s.tail(row, width)
		}
		rows = append(rows, s.cut(row, width))
	}
	if s.rows = rows; s.other != nil {
		s.rows = append(rows, make([]string, height)...)[:height]
		s.row = min(s.row, height-1)
	}
}

// Shown is what one sees, without blanks at the ends of lines and without the empty rows at the
// bottom.
func (s *Screen) Shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return text(s.rows[s.top():])
}

// All is what one sees when one scrolls back as far as it goes.
func (s *Screen) All() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return text(s.rows)
}

func text(rows []string) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// State is what a screen knows beside its text.
type State struct {
	Row, Col   int  // of the cursor; rows count from the first ever written
	Rows       int  // ever written
	Sane       bool // the cursor is visible and long lines wrap, as a program finds it
	Attributes int  // how often attributes of text were set
	Overflow   int  // characters beyond the right edge
	Frames     int  // writes
}

// State returns the state.
func (s *Screen) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{
		Row: s.row, Col: s.col, Rows: len(s.rows), Sane: s.wrap && s.cursor && s.pending == "" && s.other == nil,
		Attributes: s.attributes, Overflow: s.overflow, Frames: s.frames,
	}
}

// take does what stands at the front of text and returns its length, 0 if it is not whole.
func (s *Screen) take(text string) int {
	const escape = "\x1b["
	if n := s.whole(text); n >= 0 {
		return n
	}
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
	case c == 'J' && arg == "" && s.other != nil:
		s.rows[s.row] = s.cut(s.rows[s.row], s.col)
		s.rows = s.rows[:s.row+1]
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
	case c == 'm' && !strings.ContainsAny(arg, "<=>?"):
		if arg != "" && arg != "0" || s.other == nil {
			s.attributes++
		}
	case arg == "?7":
		s.wrap = c == 'h'
	case arg == "?25":
		s.cursor = c == 'h'
	case arg == "?2026":
	case s.addressed(arg, c):
	default:
		s.t.Errorf("unknown command %q", arg+string(c))
	}
}

func (s *Screen) put(r rune) {
	switch r {
	case '\r':
		s.col = 0
	case '\b':
		s.col = max(s.col-1, 0)
	case '\t':
		s.col = min((s.col/8+1)*8, s.width-1)
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
