package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/journaltool"
)

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

func runStoreVerify(cmd *cobra.Command, f *storeFlags) error {
	hint, err := f.where(cmd)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	bar := f.bar(cmd, false)
	r, err := journaltool.Verify(ctx, f.dir, bar)
	bar.Clear()
	if err != nil {
		return storeError(err, hint)
	}
	if cli.JSON(cmd) {
		err = cli.WriteJSON(cmd.OutOrStdout(), r)
	} else {
		err = cli.WriteTable(cmd.OutOrStdout(), reportRows(r))
	}
	return errors.Join(err, damaged(r))
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
	return "whole, not closed: the server died"
}

// clock is a time for people, to the second; - for none.
func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}
