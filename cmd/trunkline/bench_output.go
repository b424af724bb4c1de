package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
)

// benchOutput is where a run is shown and written.
type benchOutput struct {
	show     func(loadgen.Sample)
	endView  func()
	progress *listened // stderr
	text     io.Writer // of the summary
	results  []benchResult
}

// listened is an output with a reader. A reader that went away is known after the next line, and
// ends the run.
type listened struct {
	io.Writer
	leave func() // called when the reader went away
	err   error
}

// Write passes on what is written until it fails.
func (l *listened) Write(b []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.Writer.Write(b)
	if err != nil {
		l.err = err
		l.leave()
	}
	return n, err
}

// benchResult is one form of the result. Its file is opened before a run and written at the end: a
// run that fails does not cost the result of the one before.
type benchResult struct {
	name   string
	format func(io.Writer, *loadgen.Result) error
	to     io.Writer
	file   *os.File // nil for stdout, whose name is "-"
	ours   bool     // there was none before
}

// open opens or creates the file.
func (b *benchResult) open() (err error) {
	b.file, err = os.OpenFile(b.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if b.ours = err == nil; errors.Is(err, fs.ErrExist) {
		b.file, err = os.OpenFile(b.name, os.O_WRONLY, 0)
	}
	b.to = b.file
	return err
}

// write writes the result and closes its file. Devices and pipes have nothing to drop before.
func (b *benchResult) write(r *loadgen.Result) error {
	if b.file == nil {
		return b.format(b.to, r)
	}
	info, err := b.file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = b.file.Truncate(0)
	}
	return errors.Join(err, b.format(b.to, r), b.file.Close())
}

// giveUp leaves everything as it was.
func (b *benchResult) giveUp() {
	if b.file == nil {
		return
	}
	b.file.Close()
	if b.ours {
		os.Remove(b.name)
	}
}

// openOutput opens everything, so that a run is not lost to a file that cannot be written. leave is
// called when no reader is left for what is shown any more.
func (f *benchFlags) openOutput(cmd *cobra.Command, p loadgen.Plan, leave func()) (*benchOutput, error) {
	o := &benchOutput{progress: &listened{Writer: cmd.ErrOrStderr(), leave: leave}, text: cmd.OutOrStdout()}
	wanted := []benchResult{{name: f.jsonFile, format: benchview.JSON}, {name: f.hdr, format: benchview.HDRLog}, {name: f.svg, format: benchview.SVG}}
	if cli.JSON(cmd) {
		wanted = append(wanted, benchResult{name: "-", format: benchview.JSON})
	}
	for _, want := range wanted {
		if want.name == "" {
			continue
		}
		if err := o.open(cmd, want); err != nil {
			o.close()
			return nil, err
		}
	}
	o.openView(f, p)
	return o, nil
}

// open opens one result; "-" is stdout, and the summary goes to stderr then.
func (o *benchOutput) open(cmd *cobra.Command, want benchResult) error {
	for _, other := range o.results {
		if other.name == want.name {
			return cli.Errorf(cli.CodeUsage, "cannot write two results to %s", want.name)
		}
	}
	if want.name == "-" {
		o.text = o.progress
		want.to = cmd.OutOrStdout()
	} else if err := want.open(); err != nil {
		return cli.Errorf(cli.CodeUsage, "cannot write the result: %w", err)
	}
	o.results = append(o.results, want)
	return nil
}

// openView shows the run as it goes: one line that is written over on a terminal, a line per
// interval elsewhere.
func (o *benchOutput) openView(f *benchFlags, p loadgen.Plan) {
	terminal := o.progress.Writer
	if f.noLive || !cli.IsTerminal(terminal) || os.Getenv("TERM") == "dumb" {
		o.show, o.endView = benchview.Lines(o.progress, p), func() {}
		return
	}
	columns := func() int { return cmp.Or(cli.Columns(terminal), 80) }
	o.show, o.endView = benchview.Status(o.progress, columns, os.Getenv("NO_COLOR") == "", p)
}

// summaryWidth is that of the terminal, or 0.
func (o *benchOutput) summaryWidth() int {
	if o.text == o.progress {
		return cli.Columns(o.progress.Writer)
	}
	return cli.Columns(o.text)
}

// write writes the summary and all results.
func (o *benchOutput) write(r *loadgen.Result) error {
	text := &written{Writer: o.text}
	benchview.Summary(text, o.summaryWidth(), r)
	var failed error
	switch {
	case o.progress.err != nil:
		failed = fmt.Errorf("cannot write the progress: %w", o.progress.err)
	case text.err != nil:
		failed = fmt.Errorf("cannot write the summary: %w", text.err)
	}
	for _, result := range o.results {
		if err := result.write(r); err != nil {
			name := result.name
			if name == "-" {
				name = "stdout"
			}
			failed = errors.Join(failed, fmt.Errorf("cannot write %s: %w", name, err))
		}
	}
	o.results = nil
	return failed
}

// close gives up results that were not written.
func (o *benchOutput) close() {
	for _, result := range o.results {
		result.giveUp()
	}
}
