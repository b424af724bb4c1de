package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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
		Long: "Print one JSON object per index: index, time, epoch, kind, and the fields of the change. The first record of an epoch is a\n" +
			"claim, which holds nothing. A summary goes to stderr.",
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
	signal.Ignore(syscall.SIGPIPE) // so that a reader that went away is an error of a write, after which things are closed
	defer signal.Reset(syscall.SIGPIPE)
	bar := f.bar(cmd, isTerminal(w))
	done, err := journaltool.Export(ctx, f.dir, f.in, w, bar)
	bar.Clear()
	if err == nil && f.file != "" {
		_, err = out.Write(nil) // an empty export is an empty file
	}
	err = errors.Join(err, out.Close())
	if errors.Is(err, syscall.EPIPE) {
		return &cli.Error{Code: cli.CodeFailed} // the reader has seen enough, like head, and no text reaches it
	}
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
	fmt.Fprintf(talk, "trunkline: exported %d lines, index %d to %d\n", done.Lines, done.First, done.Last)
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

// backupFlags are the arguments of store backup.
type backupFlags struct {
	storeFlags
	noVerify bool
}

func newStoreBackupCmd() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup DEST",
		Short: "Copy a store to a new directory, and verify the copy",
		Long: "Copy a store to the directory DEST, which must not be there yet, sync it and verify it. DEST is a store.dir like the\n" +
			"original. A damaged store is copied as it is: a copy to keep before 'serve --recover-to-index'.",
		Example: "  trunkline store backup /backup/trunkline-monday\n  trunkline serve --set store.dir=/backup/trunkline-monday",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.noVerify, "no-verify", false, "do not read the copy again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runStoreBackup(cmd, &f, args[0]) }
	return cmd
}

// madeBackup is the document of store backup --json.
type madeBackup struct {
	Directory string              `json:"dir"`
	Backup    string              `json:"backup"`
	Bytes     uint64              `json:"bytes"`
	Report    *journaltool.Report `json:"report"` // null with --no-verify
}

func runStoreBackup(cmd *cobra.Command, f *backupFlags, dest string) error {
	if dest == "" {
		return cli.Errorf(cli.CodeUsage, "cannot back up to a directory without a name")
	}
	b := madeBackup{Backup: dest}
	var unread error
	err := f.run(cmd, func(ctx context.Context, bar *cli.Progress) (err error) {
		b.Directory = f.dir
		if b.Bytes, err = journaltool.Backup(ctx, f.dir, dest, bar); err == nil && !f.noVerify {
			b.Report, unread = journaltool.Verify(ctx, dest, bar)
		}
		return err
	})
	if err != nil {
		return err
	}
	if unread != nil {
		return unverified(unread, dest)
	}
	err = cli.Show(cmd, b, b.rows())
	if f.noVerify {
		return err
	}
	return errors.Join(err, damaged(b.Report))
}

// unverified is the error for a copy that was made and not verified.
func unverified(err error, dest string) error {
	code := cli.CodeFailed
	if errors.Is(err, context.Canceled) {
		code = cli.CodeInterrupted
	}
	return cli.Errorf(code, "the copy in %s is whole, but was not verified: %w", dest, err).
		WithHint("trunkline store verify --store-dir " + dest)
}

func (b *madeBackup) rows() [][]string {
	var t table
	t.add("backup", "%s", b.Backup)
	t.add("copied", "%s", cli.Bytes(b.Bytes))
	switch r := b.Report; {
	case r == nil:
		t.add("verdict", "not verified")
	case r.Sound:
		t.add("verdict", "sound, %s", fmt.Sprintf("index %d to %d, %d records, %d snapshots", r.FirstIndex, r.LastIndex, r.Records, len(r.Snapshots)))
	default:
		t.add("verdict", "damaged, as the original is")
	}
	return t
}
