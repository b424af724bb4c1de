package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/journaltool"
)

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
	hint, err := f.where(cmd)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	b := madeBackup{Directory: f.dir, Backup: dest}
	bar := f.bar(cmd, false)
	defer bar.Clear()
	if b.Bytes, err = journaltool.Backup(ctx, f.dir, dest, bar); err != nil {
		return storeError(err, hint)
	}
	if !f.noVerify {
		if b.Report, err = journaltool.Verify(ctx, dest, bar); err != nil {
			return unverified(err, dest)
		}
	}
	bar.Clear()
	if cli.JSON(cmd) {
		err = cli.WriteJSON(cmd.OutOrStdout(), b)
	} else {
		err = cli.WriteTable(cmd.OutOrStdout(), b.rows())
	}
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
