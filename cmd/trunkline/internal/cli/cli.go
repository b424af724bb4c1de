// Package cli is the manners of the command line: one error type with an exit code and hints, one
// renderer for it, one way to print a table or a JSON document. Every verb uses it, so that a
// script meets the same codes and the same shapes everywhere.
//
// Data goes to stdout and talk goes to stderr. Under --json a failure is one JSON object on stderr.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes of every verb. A script may rely on them.
const (
	CodeOK          = 0
	CodeFailed      = 1
	CodeUsage       = 2
	CodeNotFound    = 3
	CodeNotAllowed  = 4
	CodeUnavailable = 5 // unavailable or timed out
	CodeConflict    = 6
)

// Error is a failure with the exit code it ends the process with and, when there is something to do
// about it, a hint: one line each, separated by newlines. Usage, if set, is printed after both, but
// not as JSON. With a nil Err it ends the process with its code and prints nothing: the command has
// printed everything already.
type Error struct {
	Code  int
	Err   error
	Hint  string
	Usage string

	// ServerCode is the code of a server's answer, such as RESOURCE_EXHAUSTED, "" for other
	// failures; Retryable and RetryAfterSeconds come with it. They are for JSON: the text of Err
	// contains the code too.
	ServerCode        string
	Retryable         bool
	RetryAfterSeconds float64
}

// Error returns the message without the program name and without the hint.
func (e *Error) Error() string {
	if e.Err == nil {
		return "failed"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with this exit code; %w works as in fmt.Errorf.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// WithHint sets the hint and returns e, for one-line construction.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// Exit returns the exit code for err: CodeOK for nil, the code an Error in its chain carries,
// CodeUnavailable for a deadline that passed, else CodeFailed.
func Exit(err error) int {
	if err == nil {
		return CodeOK
	}
	var e *Error
	switch {
	case errors.As(err, &e) && e.Code != CodeOK:
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return CodeUnavailable
	}
	return CodeFailed
}

// AsUsage marks err as a usage error unless it carries a code already.
func AsUsage(err error, hint string) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Code: CodeUsage, Err: err, Hint: hint}
}

// CodeInterrupted is the exit code of work that SIGINT or SIGTERM ended before its end, as shells
// have it.
const CodeInterrupted = 130

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM; the second one kills the
// process as if no handler were set.
func UntilSignal(parent context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// CodeReaderGone is the exit code of a command whose stdout has lost its reader: what a shell shows
// of a program that SIGPIPE ended.
const CodeReaderGone = 141

// ReaderGone reports whether err is a write to stdout, a pipe or socket without a reader.
func ReaderGone(err error) bool {
	var write *fs.PathError
	return errors.As(err, &write) && write.Err == syscall.EPIPE && write.Path == os.Stdout.Name()
}

// Interrupted gives an error that comes of a canceled context the exit code for it; other errors
// stay as they are.
func Interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return Errorf(CodeInterrupted, "interrupted")
	}
	return err
}

// FlagJSON is the persistent flag of the root command that turns every output, errors included,
// into JSON.
const FlagJSON = "json"

// JSON reports whether --json was given to cmd or to one of its parents.
func JSON(cmd *cobra.Command) bool {
	f := cmd.Flag(FlagJSON)
	return f != nil && f.Value.String() == "true"
}

// WantsJSON finds --json in raw arguments. It serves the errors that happen before the flags could
// be parsed.
func WantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--" + FlagJSON, "--" + FlagJSON + "=true":
			return true
		}
	}
	return false
}

// rendered is the shape of an error under --json; code is the exit code. The last three members are
// those of a server's answer.
type rendered struct {
	Error             string  `json:"error"`
	Code              int     `json:"code"`
	Hint              string  `json:"hint"`
	ServerCode        string  `json:"server_code,omitempty"`
	Retryable         bool    `json:"retryable,omitempty"`
	RetryAfterSeconds float64 `json:"retry_after_seconds,omitempty"`
}

// Render writes err to w (stderr): "trunkline: message" with "hint:" lines and the usage text, or
// one JSON object of error, code and hint. A nil err and an Error without a cause write nothing.
func Render(w io.Writer, err error, asJSON bool) {
	if err == nil {
		return
	}
	e := new(Error)
	if errors.As(err, &e) && e.Err == nil {
		return
	}
	if asJSON {
		text, _ := json.Marshal(rendered{err.Error(), Exit(err), e.Hint, e.ServerCode, e.Retryable, e.RetryAfterSeconds})
		_ = Write(w, string(text)+"\n")
		return
	}
	fmt.Fprintf(w, "trunkline: %s\n", VisibleLines(err.Error()))
	for _, line := range strings.Split(e.Hint, "\n") {
		if line != "" {
			fmt.Fprintf(w, "hint: %s\n", Visible(line))
		}
	}
	_, _ = io.WriteString(w, e.Usage)
}

// Show writes what a command found to its stdout: v as JSON under --json, else rows as a table.
func Show(cmd *cobra.Command, v any, rows [][]string) error {
	if JSON(cmd) {
		return WriteJSON(cmd.OutOrStdout(), v)
	}
	return writeTable(cmd.OutOrStdout(), rows)
}

// WriteJSON writes v to w as one indented JSON document with a final newline, as Write does.
func WriteJSON(w io.Writer, v any) error {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return Write(w, text.String())
}

// writeTable writes rows to w in aligned columns, two spaces apart, on a terminal no wider than it
// is where that is possible. Rows may differ in length.
func writeTable(w io.Writer, rows [][]string) error {
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for j := range row {
			rows[i][j] = Visible(row[j])
		}
	}
	if width := Columns(w); width > 0 {
		rows = fit(rows, width)
	}
	tw := tabwriter.NewWriter(w, 0, 4, columnGap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// progressWidth is how wide a progress bar is at most, in characters: one less than the narrowest
// common terminal, on which a full
// line would wrap.
const progressWidth = 79

// redrawEvery is how often a bar is drawn: as fast as one can read.
const redrawEvery = 100 * time.Millisecond

const barWidth = 24

// lineEvery is how often a line is written where there is no terminal.
const lineEvery = 10 * time.Second

// Progress draws a bar on one line of a terminal, over and over: percent, rate and the time that is
// left. Where there is no terminal it writes a line now and then, and none about work that is over
// before. Nil draws nothing. It is for one goroutine.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	lines bool

	phase, unit string
	total, done uint64
	began, next time.Time
	drawn       int // characters on the line
}

// NewProgress returns a bar on w, which is a terminal; now reads the clock.
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	return &Progress{w: w, now: now}
}

// NewProgressLines returns a progress that writes lines to w, which is no terminal.
func NewProgressLines(w io.Writer, now func() time.Time) *Progress {
	return &Progress{w: w, now: now, lines: true, next: now().Add(lineEvery)}
}

// Begin starts a phase that ends at total, counted in unit; "bytes" are shown as sizes.
func (p *Progress) Begin(phase, unit string, total uint64) {
	if p == nil {
		return
	}
	p.phase, p.unit, p.total, p.done = phase, unit, total, 0
	p.began = p.now()
	if p.lines {
		return
	}
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

// Clear takes the bar off the terminal, before something else is written there. The next Set draws
// it again.
func (p *Progress) Clear() {
	if p == nil || p.drawn == 0 {
		return
	}
	fmt.Fprintf(p.w, "\r%*s\r", p.drawn, "")
	p.drawn, p.next = 0, time.Time{}
}

func (p *Progress) draw() {
	now := p.now()
	if p.lines {
		p.next = now.Add(lineEvery)
		fmt.Fprintf(p.w, "trunkline: %s\n", p.text(now.Sub(p.began), p.phase, ""))
		return
	}
	p.next = now.Add(redrawEvery)
	line := p.line(now.Sub(p.began))
	fmt.Fprintf(p.w, "\r%-*s", p.drawn, line)
	p.drawn = len(line)
}

func (p *Progress) line(passed time.Duration) string {
	full := int(p.share() * barWidth)
	bar := "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "] "
	line := p.text(passed, fmt.Sprintf("%-9s", p.phase), bar)
	return line[:min(len(line), progressWidth)]
}

// share is how much is done, 0 to 1.
func (p *Progress) share() float64 {
	if p.total == 0 {
		return 1
	}
	return min(float64(p.done)/float64(p.total), 1)
}

func (p *Progress) text(passed time.Duration, phase, bar string) string {
	line := fmt.Sprintf("%s %s%3d%%", phase, bar, int(p.share()*100))
	if secs := passed.Seconds(); secs > 0 && p.done > 0 {
		rate := float64(p.done) / secs
		left := time.Duration(float64(p.total-min(p.done, p.total)) / rate * float64(time.Second))
		line += fmt.Sprintf("  %s/s  %s left", p.amount(uint64(rate)), left.Round(time.Second))
	}
	return line
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
