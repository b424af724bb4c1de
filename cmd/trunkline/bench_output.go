package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/loadgen"
)

// benchOutput is where a run is shown and written.
type benchOutput struct {
	show    func(loadgen.Sample)
	endView func()
	text    io.Writer // of people
	files   []benchFile
}

// benchFile is one file that is written at the end.
type benchFile struct {
	name   string
	to     io.WriteCloser
	format func(io.Writer, *loadgen.Result) error
}

// openOutput opens everything, so that a run is not lost to a file that cannot be written.
func (f *benchFlags) openOutput(cmd *cobra.Command, p loadgen.Plan) (*benchOutput, error) {
	o := &benchOutput{text: cmd.OutOrStdout()}
	for _, want := range []struct {
		name   string
		format func(io.Writer, *loadgen.Result) error
	}{{f.json, benchview.JSON}, {f.hdr, benchview.HDRLog}, {f.svg, benchview.SVG}} {
		switch want.name {
		case "":
			continue
		case "-":
			o.text = cmd.ErrOrStderr()
			o.files = append(o.files, benchFile{"stdout", open{cmd.OutOrStdout()}, want.format})
			continue
		}
		file, err := os.Create(want.name)
		if err != nil {
			o.close()
			return nil, cli.Errorf(cli.CodeUsage, "cannot write the result: %w", err)
		}
		o.files = append(o.files, benchFile{want.name, file, want.format})
	}
	o.openView(f, p)
	return o, nil
}

// open is a writer that nobody closes.
type open struct{ io.Writer }

func (open) Close() error { return nil }

// openView shows the run as it goes: painted over and over on a terminal, a line per interval elsewhere.
func (o *benchOutput) openView(f *benchFlags, p loadgen.Plan) {
	terminal, ok := o.text.(*os.File)
	if f.noLive || !ok || !isTerminal(terminal) || os.Getenv("TERM") == "dumb" || tooLow(terminal) {
		lines := benchview.NewLines(o.text, p)
		o.show, o.endView = lines.Show, lines.Close
		return
	}
	live := benchview.NewLive(terminal, func() int { columns, _ := terminalSize(terminal); return columns }, os.Getenv("NO_COLOR") == "", p)
	o.show, o.endView = live.Show, live.Close
}

// tooLow tells that the block would scroll.
func tooLow(terminal *os.File) bool {
	_, rows := terminalSize(terminal)
	return rows < benchview.LiveRows
}

// write writes the summary and all files.
func (o *benchOutput) write(r *loadgen.Result) error {
	benchview.Summary(o.text, r)
	var failed error
	for _, file := range o.files {
		if err := errors.Join(file.format(file.to, r), file.to.Close()); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cannot write %s: %w", file.name, err))
		}
	}
	o.files = nil
	return failed
}

// close gives up files that were not written.
func (o *benchOutput) close() {
	for _, file := range o.files {
		file.to.Close()
	}
}
