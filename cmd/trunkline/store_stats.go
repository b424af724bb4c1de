package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/journaltool"
)

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

func runStoreStats(cmd *cobra.Command, f *storeFlags) error {
	hint, err := f.where(cmd)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	bar := f.bar(cmd, false)
	s, err := journaltool.Count(ctx, f.dir, time.Now(), bar)
	bar.Clear()
	if err != nil {
		return storeError(err, hint)
	}
	if cli.JSON(cmd) {
		err = cli.WriteJSON(cmd.OutOrStdout(), s)
	} else {
		err = cli.WriteTable(cmd.OutOrStdout(), statsRows(s))
	}
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
