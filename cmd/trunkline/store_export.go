package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/journaltool"
)

// exportFlags are the arguments of store export.
type exportFlags struct {
	storeFlags
	in   journaltool.Range
	file string
}

func newStoreExportCmd() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the records of a store as JSON, one per line",
		Long: "Print one JSON object per index: index, time, epoch, kind, the fields of the\n" +
			"change, and base64: the record as it is stored. The first record of an epoch\n" +
			"is a claim, which holds nothing. Without --from and --to, what older records\n" +
			"left comes first, so that 'store import' can make the store again. The last\n" +
			"line counts the others; without it the export is not whole. A summary goes to\n" +
			"stderr.",
		Example: "  trunkline store export | jq 'select(.kind == \"kernel.create\")'\n  trunkline store export --from 1000 --to 2000 -o part.ndjson",
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.Uint64Var(&f.in.From, "from", 1, "first index")
	fs.Uint64Var(&f.in.To, "to", 0, "last index; 0 is the end")
	fs.StringVarP(&f.file, "output", "o", "", "file to write instead of stdout; one that is there is replaced")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runStoreExport(cmd, &f) }
	return cmd
}

func runStoreExport(cmd *cobra.Command, f *exportFlags) error {
	if f.in.To != 0 && f.in.From > f.in.To {
		return cli.Errorf(cli.CodeUsage, "cannot export --from %d --to %d: nothing is between them", f.in.From, f.in.To)
	}
	hint, err := f.where(cmd)
	if err != nil {
		return err
	}
	out := &exportFile{path: f.file}
	w := cmd.OutOrStdout()
	if f.file != "" {
		if err := journaltool.Outside(f.dir, f.file); err != nil {
			return storeError(err, hint)
		}
		w = out
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	bar := f.bar(cmd, cli.IsTerminal(w))
	done, err := journaltool.Export(ctx, f.dir, f.in, cli.Escaping{W: w}, bar)
	bar.Clear()
	if err == nil && f.file != "" {
		_, err = out.Write(nil) // an empty export is an empty file
	}
	err = errors.Join(err, out.Close())
	if err != nil {
		return storeError(err, hint)
	}
	summarize(cmd.ErrOrStderr(), &done)
	return exportVerdict(&done)
}

func summarize(talk io.Writer, done *journaltool.Exported) {
	if done.Lines == 0 {
		fmt.Fprintln(talk, "trunkline: exported nothing: there is no record in that range")
		return
	}
	before := ""
	if done.State > 0 {
		before = fmt.Sprintf(", and before them %d lines of what older records left", done.State)
	}
	fmt.Fprintf(talk, "trunkline: exported %d lines, index %d to %d%s\n", done.Lines, done.First, done.Last, before)
}

func exportVerdict(done *journaltool.Exported) error {
	var err error
	switch {
	case done.Damages > 0:
		err = fmt.Errorf("the export is not complete, %d places could not be read: %w", done.Damages, done.Damage)
	case done.Unreadable > 0:
		err = fmt.Errorf("%d records are no changes that this version knows", done.Unreadable)
	default:
		return nil
	}
	return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: "'trunkline store verify' says what can be done about it"}
}

// exportFile is made when the first line comes, so that a store that does not open replaces
// nothing. It is for its owner only.
type exportFile struct {
	path string
	f    *os.File
}

// Write implements io.Writer.
func (e *exportFile) Write(p []byte) (int, error) {
	if e.f == nil {
		f, err := os.OpenFile(e.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, err
		}
		e.f = f
	}
	return e.f.Write(p)
}

// Close closes the file, if it was made.
func (e *exportFile) Close() error {
	if e.f == nil {
		return nil
	}
	return e.f.Close()
}
