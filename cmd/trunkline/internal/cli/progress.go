package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progressWidth is how wide a progress bar is at most, in characters: one less than the narrowest
// common terminal, on which a full
// line would wrap.
const progressWidth = 79

// redrawEvery is how often a bar is drawn: as fast as one can read.
const redrawEvery = 100 * time.Millisecond

const barWidth = 24

// Progress draws a bar on one line of a terminal, over and over: percent, rate and the time that is
// left. Nil draws nothing. It is for one goroutine.
type Progress struct {
	w   io.Writer
	now func() time.Time

	phase, unit string
	total, done uint64
	began, next time.Time
	drawn       int // characters on the line
}

// NewProgress returns a bar on w, which is a terminal; now reads the clock.
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	return &Progress{w: w, now: now}
}

// Begin starts a phase that ends at total, counted in unit; "bytes" are shown as sizes.
func (p *Progress) Begin(phase, unit string, total uint64) {
	if p == nil {
		return
	}
	p.phase, p.unit, p.total, p.done = phase, unit, total, 0
	p.began = p.now()
	p.next = p.began
	p.draw()
}

// Set notes that done of the total is behind.
func (p *Progress) Set(done uint64) {
	if p == nil {
		return
	}
	p.done = done
	if !p.now().Before(p.next) {
		p.draw()
	}
}

// Clear takes the bar off the terminal, before something else is written there.
func (p *Progress) Clear() {
	if p == nil || p.drawn == 0 {
		return
	}
	fmt.Fprintf(p.w, "\r%*s\r", p.drawn, "")
	p.drawn = 0
}

func (p *Progress) draw() {
	now := p.now()
	p.next = now.Add(redrawEvery)
	line := p.line(now.Sub(p.began))
	fmt.Fprintf(p.w, "\r%-*s", p.drawn, line)
	p.drawn = len(line)
}

func (p *Progress) line(passed time.Duration) string {
	share := 1.0
	if p.total > 0 {
		share = min(float64(p.done)/float64(p.total), 1)
	}
	full := int(share * barWidth)
	bar := strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full)
	line := fmt.Sprintf("%-9s [%s] %3d%%", p.phase, bar, int(share*100))
	if secs := passed.Seconds(); secs > 0 && p.done > 0 {
		rate := float64(p.done) / secs
		left := time.Duration(float64(p.total-min(p.done, p.total)) / rate * float64(time.Second))
		line += fmt.Sprintf("  %s/s  %s left", p.amount(uint64(rate)), left.Round(time.Second))
	}
	return line[:min(len(line), progressWidth)]
}

func (p *Progress) amount(n uint64) string {
	if p.unit == "bytes" {
		return Bytes(n)
	}
	return fmt.Sprintf("%d %s", n, p.unit)
}

// Bytes is a size for people: 1000 bytes are a kB.
func Bytes(n uint64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1000, "kMGTPE"
	for v >= 999.95 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	return fmt.Sprintf("%.1f %cB", v, units[0])
}
