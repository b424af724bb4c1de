package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/journaltool"
	"trunkline/cmd/trunkline/internal/storesocket"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

// backupFlags are the arguments of store backup and store restore.
type backupFlags struct {
	storeFlags
	noVerify bool
}

func newStoreBackupCmd() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup DIR|FILE.tar",
		Short: "Copy a store, also beside a running server, and verify the copy",
		Long: "Copy a store to the directory DIR or the archive FILE.tar, which must not be\n" +
			"there yet, sync it and verify it. A running server is asked for a checkpoint,\n" +
			"and serves on: the copy holds everything that was answered before this command\n" +
			"began. DIR is a store.dir like the original.\n" +
			"A damaged store is copied as it is: a copy to keep before\n" +
			"'serve --recover-to-index'.",
		Example: "  trunkline store backup /backup/trunkline-monday\n  trunkline store backup --store-dir /var/lib/trunkline monday.tar\n  trunkline serve --set store.dir=/backup/trunkline-monday",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.noVerify, "no-verify", false, "do not read the copy again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runStoreBackup(cmd, &f, args[0]) }
	return cmd
}

// madeBackup is the document of store backup --json.
type madeBackup struct {
	Directory string `json:"dir"`
	Backup    string `json:"backup"`
	Bytes     uint64 `json:"bytes"`
	// Online is set when a running server made a checkpoint.
	Online bool `json:"online"`
	// Index is the one up to which the backup is complete; 0 where it is not known: with
	// --no-verify of a store that no server had open, and where it is damaged.
	Index uint64 `json:"index"`
	// SHA256 is that of an archive.
	SHA256 string              `json:"sha256,omitempty"`
	Report *journaltool.Report `json:"report"` // null with --no-verify
}

func runStoreBackup(cmd *cobra.Command, f *backupFlags, dest string) error {
	if dest == "" {
		return cli.Errorf(cli.CodeUsage, "cannot back up to a directory without a name")
	}
	b := madeBackup{Backup: dest}
	var unread error
	err := f.run(cmd, func(ctx context.Context, bar *cli.Progress) (err error) {
		b.Directory = f.dir
		unread, err = b.make(ctx, !f.noVerify, bar)
		return err
	})
	if err != nil {
		return err
	}
	if unread != nil {
		return unverified(unread, dest)
	}
	err = cli.Show(cmd, b, b.rows())
	if b.Report == nil {
		return err
	}
	return errors.Join(err, damaged(b.Report))
}

// make makes the backup: of the directory itself, or where a server has it open, of a checkpoint.
// unread is why the copy, which is whole, was not verified.
func (b *madeBackup) make(ctx context.Context, verify bool, bar *cli.Progress) (unread, err error) {
	err = b.copy(ctx, b.Directory, verify, bar)
	if errors.Is(err, journal.ErrLocked) {
		err = b.copyOnline(ctx, err, verify, bar)
	}
	if err != nil || !verify {
		return nil, err
	}
	if b.Report == nil {
		if b.Report, unread = journaltool.Verify(ctx, b.Backup, bar); unread != nil {
			return unread, nil
		}
	}
	asked := b.Index
	if b.Index = 0; b.Report.Sound {
		b.Index = b.Report.LastIndex
	}
	if b.Report.Sound && b.Index < asked {
		err = fmt.Errorf("the copy in %s ends at index %d, before %d: it is not complete", b.Backup, b.Index, asked)
	}
	return nil, err
}

// copyOnline copies a checkpoint of the server that has the directory open, as locked reports, and
// gives it back: nothing that follows needs the server.
func (b *madeBackup) copyOnline(ctx context.Context, locked error, verify bool, bar *cli.Progress) error {
	if err := journaltool.Outside(b.Directory, b.Backup); err != nil {
		return err
	}
	lease, err := storesocket.Ask(ctx, b.Directory)
	if errors.Is(err, storesocket.ErrNoServer) {
		return fmt.Errorf("%w, and %w", locked, err)
	}
	if err != nil {
		return err
	}
	defer lease.Close()
	b.Online, b.Index = true, lease.Index
	if err := embedded.LeavesRoom(lease.Dir, b.Backup); err != nil {
		return cli.Errorf(cli.CodeFailed, "%w", err).WithHint("a server without room refuses every change; make the backup on another disk")
	}
	err = b.copy(lease.Context(), lease.Dir, verify, bar)
	if err != nil && ctx.Err() == nil && lease.Context().Err() != nil {
		return fmt.Errorf("cannot copy the checkpoint %s: %w", lease.Dir, context.Cause(lease.Context()))
	}
	return err
}

// copy copies a directory that does not change meanwhile. For an archive it verifies the original:
// the archive cannot be opened, and what is read of it again are its bytes.
func (b *madeBackup) copy(ctx context.Context, dir string, verify bool, bar *cli.Progress) (err error) {
	if !journaltool.IsArchive(b.Backup) {
		b.Bytes, err = journaltool.Backup(ctx, dir, b.Backup, bar)
		return err
	}
	if verify {
		if b.Report, err = journaltool.Verify(ctx, dir, bar); err != nil {
			return err
		}
	}
	written, sum, err := journaltool.Archive(ctx, dir, b.Backup, bar)
	b.Bytes, b.SHA256 = written, hex.EncodeToString(sum[:])
	return err
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
	if b.Online {
		t.add("from", "a checkpoint of the running server")
	}
	t.add("copied", "%s", cli.Bytes(b.Bytes))
	if b.SHA256 != "" {
		t.add("sha256", "%s", b.SHA256)
	}
	if b.Index > 0 {
		t.add("complete", "up to index %d", b.Index)
	}
	t.verdict(b.Report, "damaged, as the original is")
	return t
}

func (t *table) verdict(r *journaltool.Report, bad string) {
	switch {
	case r == nil:
		t.add("verdict", "not verified")
	case r.Sound:
		t.add("verdict", "sound, %s", fmt.Sprintf("index %d to %d, %d records, %d snapshots", r.FirstIndex, r.LastIndex, r.Records, len(r.Snapshots)))
	default:
		t.add("verdict", "%s", bad)
	}
}
