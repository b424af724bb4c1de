// Package benchview shows what a run of loadgen did: to people while it runs (a block that is
// repainted in place, or one line per interval), to people at the end (tables and plain sentences),
// and to programs (JSON, an HdrHistogram log, SVG).
//
//	loadgen.Sample ──► Live    a terminal: repainted in place
//	                ─► Lines   anything else: one line per interval
//	loadgen.Result ──► Summary the tables at the end
//	                ─► JSON, HDRLog, SVG
//
// Every latency is from the intended start of its request. Texts that a server sent (its error
// codes) or that came from a flag (names, addresses) are cleaned before they are shown: no control
// character of theirs reaches a terminal. Tokens, bodies and the passwords of addresses are never
// shown.
//
// The terminal and the charts are written by hand: a verb that answers once must start within
// milliseconds, and every package that the program imports is initialised at every start.
package benchview

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"trunkline/cmd/trunkline/loadgen"
)

// repaintEvery is how often the block is painted at most: as fast as one can read.
const repaintEvery = 100 * time.Millisecond

// What a terminal is sent around each frame. Each frame puts back what it changes, so a process
// that is killed leaves a sane terminal behind.
const (
	frameBegin = "\x1b[?2026h\x1b[?25l\x1b[?7l" // show nothing until the end; hide the cursor; cut at the edge and do not wrap
	frameEnd   = "\x1b[?7h\x1b[?25h\x1b[?2026l"
	eraseRight = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// Live is a block of lines on a terminal that is repainted in place, at most every 100 ms and only
// where something changed. Its methods may be called from any goroutine and do not wait for the
// terminal, Close aside.
type Live struct {
	w     io.Writer
	size  func() (columns, rows int)
	color bool
	plan  loadgen.Plan

	mu    sync.Mutex
	tally *tally
	came  time.Time // when the newest sample came

	// Of the painting goroutine:
	frame frame
	body  []Line
	drawn int // the samples and the width in body
	fits  int
	close sync.Once
	stop  chan struct{}
	done  chan struct{}
}

// NewLive starts to paint on w, which is a terminal, below where its cursor is. size returns how
// large it is, never 0, and is asked before each repaint, from one goroutine. Without color no
// attribute of text is used: the caller passes false where NO_COLOR is set. Close must be called;
// nothing else may write to the terminal before.
func NewLive(w io.Writer, size func() (columns, rows int), color bool, p loadgen.Plan) *Live {
	l := &Live{
		w: w, size: size, color: color, plan: p,
		tally: newTally(), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go l.paint()
	return l
}

// Show takes one interval, warming up included; it is on the terminal within 100 ms. The histograms
// of s are read until the next call and must not change before.
func (l *Live) Show(s loadgen.Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.add(s)
	l.came = time.Now()
}

// Close takes the block off the terminal and leaves the cursor where it was before NewLive; it
// waits for the terminal. What comes next, Summary or an error, stands where the block stood.
// Calling it again does nothing.
func (l *Live) Close() {
	l.close.Do(func() {
		close(l.stop)
		<-l.done
	})
}

func (l *Live) paint() {
	defer close(l.done)
	tick := time.NewTicker(repaintEvery)
	defer tick.Stop()
	for {
		l.repaint()
		select {
		case <-tick.C:
		case <-l.stop:
			width, _ := l.room()
			_, _ = l.w.Write(l.frame.clear(width))
			return
		}
	}
}

// room is what may be used of the terminal: a character in its last column leaves the cursor in a
// state of its own, and its last row is for the cursor.
func (l *Live) room() (width, rows int) {
	width, rows = l.size()
	return width - 1, rows - 1
}

func (l *Live) repaint() {
	width, rows := l.room()
	l.mu.Lock()
	lines := head(&l.plan, l.tally, l.passed(), width)
	if l.body == nil || l.drawn != l.tally.samples || l.fits != width {
		l.body, l.drawn, l.fits = body(&l.plan, l.tally, width), l.tally.samples, width
	}
	l.mu.Unlock()
	lines = fit(append(lines, l.body...), rows)
	texts := make([]string, len(lines))
	for i, ln := range lines {
		texts[i] = ln.Render(width, l.color)
	}
	if out := l.frame.next(texts, lines, width); out != nil {
		_, _ = l.w.Write(out) // a terminal that is gone ends the run by a signal, not by a lost picture
	}
}

// passed is the time since the start of measuring, by the newest sample and the clock. l.mu is
// held.
func (l *Live) passed() time.Duration {
	if l.tally.samples == 0 {
		return -l.plan.Warmup
	}
	to := l.tally.newest.To
	passed := to + min(time.Since(l.came), max(l.plan.Interval, repaintEvery))
	if to < 0 { // the next sample shows when warming up is over
		return min(passed, -1)
	}
	if l.plan.Duration > 0 {
		return min(passed, max(l.plan.Duration, to))
	}
	return passed
}

// frame knows what is on the terminal, to paint over it.
type frame struct {
	texts []string
	cells []int // of each line
	width int
	buf   bytes.Buffer
}

// next returns the bytes that replace the lines on the terminal by texts, nil if they are the same.
// The bytes are valid until the next call.
func (f *frame) next(texts []string, lines []Line, width int) []byte {
	if f.texts != nil && width == f.width && slices.Equal(f.texts, texts) {
		return nil
	}
	f.buf.Reset()
	f.buf.WriteString(frameBegin)
	f.up(width)
	f.cells = f.cells[:0]
	for i, text := range texts {
		f.buf.WriteString(text + eraseRight + "\r\n")
		f.cells = append(f.cells, min(lines[i].cells(), width))
	}
	f.buf.WriteString(eraseBelow + frameEnd)
	f.texts, f.width = texts, width
	return f.buf.Bytes()
}

// clear returns the bytes that take the lines off: the first one by itself, because some terminals
// keep a copy of a screen that is erased from its first cell on.
func (f *frame) clear(width int) []byte {
	f.buf.Reset()
	f.buf.WriteString(frameBegin)
	f.up(width)
	f.buf.WriteString(eraseRight)
	if len(f.texts) > 0 {
		f.buf.WriteString("\r\n" + eraseBelow + "\x1b[A")
	}
	f.buf.WriteString(frameEnd)
	return f.buf.Bytes()
}

// up moves the cursor to where the lines on the terminal begin. On one that became narrower, lines
// that were longer take several rows: terminals in use today wrap them again. One that cuts them
// instead loses that many rows above the block.
func (f *frame) up(width int) {
	rows := 0
	for _, n := range f.cells {
		rows += 1 + max(n-1, 0)/max(width+1, 1)
	}
	f.buf.WriteString("\r")
	if rows > 0 {
		fmt.Fprintf(&f.buf, "\x1b[%dA", rows)
	}
}
