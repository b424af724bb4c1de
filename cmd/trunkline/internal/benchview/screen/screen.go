package screen

import (
	"strings"
	"sync"
	"testing"
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
	var rows []string
	for i, row := range s.rows {
		if i == s.row {
			s.row = len(rows)
		}
		for s.reflows && s.cells(row) > width {
			rows = append(rows, s.cut(row, width))
			row = s.tail(row, width)
		}
		rows = append(rows, s.cut(row, width))
	}
	s.rows = rows
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
		Row: s.row, Col: s.col, Rows: len(s.rows), Sane: s.wrap && s.cursor && s.pending == "",
		Attributes: s.attributes, Overflow: s.overflow, Frames: s.frames,
	}
}
