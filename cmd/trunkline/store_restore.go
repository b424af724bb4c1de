package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/journaltool"
	"trunkline/engine/journal"
)

func newStoreRestoreCmd() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "restore DIR|FILE.tar",
		Short: "Put a backup in the place of a store, and verify it",
		Long: "Copy a backup, a directory or an archive, to store.dir, which must be missing\n" +
			"or empty, sync it and verify it. Nothing is left of a restoring that fails or\n" +
			"is interrupted, and no server starts on one that a crash cut short.",
		Example: "  trunkline store restore /backup/trunkline-monday\n  trunkline store restore --store-dir /var/lib/trunkline monday.tar",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.noVerify, "no-verify", false, "do not read what was restored again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runStoreRestore(cmd, &f, args[0]) }
	return cmd
}

// restored is the document of store restore --json.
type restored struct {
	Backup    string              `json:"backup"`
	Directory string              `json:"dir"`
	Bytes     uint64              `json:"bytes"`
	Report    *journaltool.Report `json:"report"` // null with --no-verify
}

func runStoreRestore(cmd *cobra.Command, f *backupFlags, from string) error {
	r := restored{Backup: from}
	var unread error
	err := f.run(cmd, func(ctx context.Context, bar *cli.Progress) (err error) {
		r.Directory = f.dir
		if r.Bytes, err = journaltool.Restore(ctx, from, f.dir, bar); err == nil && !f.noVerify {
			r.Report, unread = journaltool.Verify(ctx, f.dir, bar)
		}
		return err
	})
	if err != nil {
		return err
	}
	if unread != nil {
		return unverified(unread, r.Directory)
	}
	var t table
	t.add("directory", "%s", r.Directory)
	t.add("backup", "%s", r.Backup)
	t.add("copied", "%s", cli.Bytes(r.Bytes))
	t.verdict(r.Report, "damaged, as the backup is")
	if err = cli.Show(cmd, r, t); r.Report == nil {
		return err
	}
	return errors.Join(err, damaged(r.Report))
}

// importFlags are the arguments of store import.
type importFlags struct {
	storeFlags
	mode string
}

func newStoreImportCmd() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a store of what 'store export' printed",
		Long: "Make a store of the lines of 'store export', also of another version, in\n" +
			"store.dir, which must be missing or empty. Every line is checked, and what was\n" +
			"built is verified; a line that does not fit ends it with its number, and\n" +
			"nothing is left. FILE may be - for stdin. The new store may have another mode\n" +
			"than the old one.",
		Example: "  trunkline store export -o all.ndjson\n  trunkline store import --store-dir new all.ndjson\n  trunkline store export | trunkline store import --store-dir new -",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.mode, "mode", journal.Always.String(), "mode of the new store: always or interval")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runStoreImport(cmd, &f, args[0]) }
	return cmd
}

func runStoreImport(cmd *cobra.Command, f *importFlags, name string) error {
	mode, err := journal.ParseMode(f.mode)
	if err == nil && mode == journal.Memory {
		err = errors.New("nothing is written in mode memory")
	}
	if err != nil {
		return cli.Errorf(cli.CodeUsage, "cannot use --mode %s: %w", f.mode, err).WithHint("the modes of a store are always and interval")
	}
	in, size, err := openImport(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	var done *journaltool.Imported
	err = f.run(cmd, func(ctx context.Context, bar *cli.Progress) (err error) {
		done, err = journaltool.Import(ctx, in, size, f.dir, mode, bar)
		return err
	})
	if err != nil {
		return err
	}
	var t table
	t.add("directory", "%s", done.Dir)
	t.add("mode", "%s", done.Mode)
	t.add("lines", "%d", done.Lines+done.State)
	t.add("indexes", "%d to %d", done.First, done.Last)
	t.verdict(done.Report, "damaged")
	return cli.Show(cmd, done, t)
}

// openImport opens the file, or stdin; size is 0 where it is not known.
func openImport(cmd *cobra.Command, name string) (in io.ReadCloser, size uint64, err error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), 0, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, noImport(name, err)
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a directory")
	}
	if err != nil {
		return nil, 0, errors.Join(noImport(name, err), file.Close())
	}
	if info.Mode().IsRegular() {
		size = uint64(info.Size())
	}
	return file, size, nil
}

func noImport(name string, err error) error {
	code := cli.CodeFailed
	switch {
	case errors.Is(err, os.ErrNotExist):
		code = cli.CodeNotFound
	case errors.Is(err, os.ErrPermission):
		code = cli.CodeNotAllowed
	}
	return &cli.Error{Code: code, Err: fmt.Errorf("cannot import %s: %w", name, err)}
}
