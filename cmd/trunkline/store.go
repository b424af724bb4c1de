package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/journaltool"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

// storeFlags name the directory of a store verb.
type storeFlags struct {
	dir   string
	quiet bool
}

func newStoreCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "store",
		Short: "Back up, restore, verify, count, print or build what a server keeps",
		Long: "Work on what a server keeps in store.dir. backup works beside a running\n" +
			"server. verify, stats and export need the directory to themselves and change\n" +
			"nothing in it, whatever state it is in. restore and import make a store in a\n" +
			"directory that is missing or empty.\n" +
			"Exit code 1 means damaged, 3 that there is no store, 6 that a server has it\n" +
			"open or the place is taken, 130 interrupted.",
	}, "backup, restore, verify, stats, export and import",
		newStoreBackupCmd(), newStoreRestoreCmd(), newStoreVerifyCmd(), newStoreStatsCmd(), newStoreExportCmd(), newStoreImportCmd())
}

func (f *storeFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.dir, "store-dir", "", "directory of the store (default store.dir)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	config.AddSourceFlags(fs)
}

// where finds the directory: the flag's, or that of the settings.
func (f *storeFlags) where(cmd *cobra.Command) (hint string, err error) {
	hint = "--store-dir names another directory"
	if cmd.Flags().Changed("store-dir") {
		if f.dir == "" {
			return hint, cli.Errorf(cli.CodeUsage, "cannot use --store-dir: the path is empty")
		}
		return hint, nil
	}
	c, err := loadConfig(cmd)
	if err != nil {
		return hint, err
	}
	if c.Store.Mode == config.StoreMemory {
		hint = "store.mode is memory: a server with these settings keeps nothing\n" + hint
	}
	if f.dir = c.Store.Dir; f.dir == "" {
		return hint, cli.Errorf(cli.CodeUsage, "cannot use store.dir: it is empty").WithHint(hint)
	}
	return hint, nil
}

// run finds the directory and has do work on it until a signal comes, with a progress bar. The
// error gets its exit code and a hint.
func (f *storeFlags) run(cmd *cobra.Command, do func(context.Context, *cli.Progress) error) error {
	hint, err := f.where(cmd)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	bar := f.bar(cmd, false)
	defer bar.Clear()
	return storeError(do(ctx, bar), hint)
}

// bar returns the progress: a bar on a terminal, unless it would be drawn between lines of output,
// and a line now and then elsewhere.
func (f *storeFlags) bar(cmd *cobra.Command, mixed bool) *cli.Progress {
	switch talk := cmd.ErrOrStderr(); {
	case f.quiet:
		return nil
	case !cli.IsTerminal(talk):
		return cli.NewProgressLines(talk, time.Now)
	case mixed:
		return nil
	default:
		return cli.NewProgress(talk, time.Now)
	}
}

// storeError gives an error of journaltool its exit code and adds what to do about it.
func storeError(err error, hint string) error {
	coded := func(code int, hint string) error { return &cli.Error{Code: code, Err: err, Hint: hint} }
	var damage *journal.DamageError
	var layout *journal.LayoutError
	var line *journaltool.ImportError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrLocked):
		return coded(cli.CodeConflict, "a server has it open; stop it first (SIGTERM)")
	case errors.As(err, &layout):
		return coded(cli.CodeFailed, layout.Advice())
	case errors.As(err, &line):
		return coded(cli.CodeFailed, "nothing was imported; export again, without --from, and import the file as it is")
	case errors.Is(err, embedded.ErrNotEmpty):
		return coded(cli.CodeConflict, "a store is made in a directory that is missing or empty; --store-dir names another one")
	case errors.Is(err, embedded.ErrNoJournal):
		return coded(cli.CodeNotFound, hint)
	case errors.Is(err, embedded.ErrThere):
		return coded(cli.CodeConflict, "a backup is a directory or a file of its own, which must not be there before")
	case errors.Is(err, journaltool.ErrInside):
		return coded(cli.CodeUsage, "")
	case errors.Is(err, os.ErrPermission):
		return coded(cli.CodeNotAllowed, "it belongs to the user of the server; run this as that user")
	case errors.As(err, &damage):
		return coded(cli.CodeFailed, "'trunkline store verify' says what can be done about it")
	case errors.Is(err, os.ErrNotExist):
		return coded(cli.CodeNotFound, "")
	}
	return cli.Interrupted(err)
}

func newStoreVerifyCmd() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every byte of a store, and say what can be recovered where it is damaged",
		Long: "Read every block, record and snapshot and check them: sums, order, and that each follows from the one before. Where\n" +
			"something is damaged, say which file and index, and what 'serve --recover-to-index' would keep and lose.",
		Example: "  trunkline store verify\n  trunkline store verify --store-dir /var/lib/trunkline --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runStoreVerify(cmd, &f) }
	return cmd
}

func runStoreVerify(cmd *cobra.Command, f *storeFlags) (err error) {
	var r *journaltool.Report
	err = f.run(cmd, func(ctx context.Context, bar *cli.Progress) error {
		r, err = journaltool.Verify(ctx, f.dir, bar)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(cli.Show(cmd, r, reportRows(r)), damaged(r))
}

// damaged is the end of a verification that found damage.
func damaged(r *journaltool.Report) error {
	err := r.Err()
	if err == nil {
		return nil
	}
	return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: r.Recovery.Advice()}
}

// table is what a verb prints: a name and a value per row, the name once.
type table [][]string

func (t *table) add(name, format string, args ...any) {
	*t = append(*t, []string{name, fmt.Sprintf(format, args...)})
}

func reportRows(r *journaltool.Report) [][]string {
	var t table
	t.add("directory", "%s", r.Dir)
	if r.Mode != "" {
		t.add("mode", "%s", r.Mode)
		t.totals(&r.Totals)
		for _, s := range r.Snapshots {
			verdict := ""
			if s.Error != "" {
				verdict = ", damaged"
			}
			t.add(fmt.Sprintf("snapshot %d", s.Generation), "index %d, %s in %d records, %s%s", s.Index, cli.Bytes(s.Bytes), s.Records, clock(&s.Time), verdict)
		}
		if r.Rows > 0 {
			t.add("rows", "%d of agent threads", r.Rows)
		}
		if r.Sound {
			t.add("end", "%s", ending(r))
		}
		for _, name := range r.LostMarks {
			t.add("warning", "%s is missing or torn, or the store is of an earlier version: the next start makes it again", name)
		}
	}
	for _, d := range r.Damages {
		t.add("damage", "index %d (%s): %s", d.Index, d.Where, d.Error)
	}
	if more := r.DamageCount - len(r.Damages); more > 0 {
		t.add("damage", "%d more", more)
	}
	if r.Sound {
		t.add("verdict", "sound")
	} else {
		t.add("recovery", "%s", r.Recovery.Advice())
		t.add("verdict", "damaged")
	}
	return t
}

func (t *table) totals(n *journaltool.Totals) {
	if n.Blocks == 0 {
		t.add("records", "none")
		return
	}
	t.add("epochs", "%d (%d to %d)", n.Epochs, n.FirstEpoch, n.LastEpoch)
	t.add("indexes", "%d to %d", n.FirstIndex, n.LastIndex)
	t.add("records", "%d, and %d claims of owners", n.Records, n.Claims)
	t.add("blocks", "%d, %s", n.Blocks, cli.Bytes(n.Bytes))
	t.add("written", "%s to %s", clock(n.FirstTime), clock(n.LastTime))
}

func ending(r *journaltool.Report) string {
	switch {
	case r.Torn != nil:
		return fmt.Sprintf("torn in %s at byte %d: a write that a crash cut short, which the next start takes off", r.Torn.File, r.Torn.Offset)
	case r.Closed:
		return "whole, closed by its server"
	}
	return "whole, not closed: the server died, or was running when it was copied"
}

// clock is a time for people, to the second; - for none.
func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func newStoreStatsCmd() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count what is in a store: records by kind, snapshots and their age, bytes on disk",
		Args:  cobra.NoArgs,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runStoreStats(cmd, &f) }
	return cmd
}

func runStoreStats(cmd *cobra.Command, f *storeFlags) (err error) {
	var s *journaltool.Stats
	err = f.run(cmd, func(ctx context.Context, bar *cli.Progress) error {
		s, err = journaltool.Count(ctx, f.dir, time.Now(), bar)
		return err
	})
	if err != nil {
		return err
	}
	err = cli.Show(cmd, s, statsRows(s))
	if s.Damages > 0 {
		err = errors.Join(err, cli.Errorf(cli.CodeFailed, "the journal in %s is damaged: %d places could not be read, and are not counted", s.Dir, s.Damages).
			WithHint("'trunkline store verify' says what can be done about it"))
	}
	return err
}

func statsRows(s *journaltool.Stats) [][]string {
	var t table
	t.add("directory", "%s", s.Dir)
	t.add("mode", "%s", s.Mode)
	t.totals(&s.Totals)
	if s.Records > 0 {
		t.add("record", "%s on average, %s at most", cli.Bytes(s.RecordBytes/s.Records), cli.Bytes(s.LargestRecord))
		t.add("block", "%s on average, %s at most", cli.Bytes(s.Bytes/s.Blocks), cli.Bytes(s.LargestBlock))
	}
	for _, k := range s.Kinds {
		t.add(k.Kind, "%d, %s", k.Records, cli.Bytes(k.Bytes))
	}
	for _, g := range s.Snapshots {
		t.add(fmt.Sprintf("snapshot %d", g.Generation), "index %d, %s, %s old, %d behind it", g.Index, cli.Bytes(g.Bytes), time.Duration(g.AgeSecs)*time.Second, g.Behind)
	}
	t.add("disk", "%s", cli.Bytes(s.DiskBytes))
	for _, k := range s.Files {
		t.add(k.Kind+" files", "%d, %s", k.Files, cli.Bytes(k.Bytes))
	}
	return t
}
