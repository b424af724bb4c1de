package main

import (
	"errors"
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
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Verify, count, print or back up the directory of a server that is not running",
		Long: "Look at what a server keeps in store.dir, while no server has it open. Nothing there is changed, whatever state it is\n" +
			"in, and the mode is the one the directory was made in. Exit code 1 means damaged, 3 that there is no store, 6 that a\n" +
			"server has it open, 130 interrupted.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cli.Errorf(cli.CodeUsage, "cannot run store without a verb")
			if len(args) > 0 {
				err = cli.Errorf(cli.CodeUsage, "unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return err.WithHint("the verbs are verify, stats, export and backup")
		},
	}
	cmd.AddCommand(newStoreVerifyCmd(), newStoreStatsCmd(), newStoreExportCmd(), newStoreBackupCmd())
	return cmd
}

func (f *storeFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.dir, "store-dir", "", "directory of the store (default store.dir)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress bar")
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

// bar returns the progress bar: none for scripts, nor where it would be drawn between lines of
// output.
func (f *storeFlags) bar(cmd *cobra.Command, mixed bool) *cli.Progress {
	if f.quiet || mixed || !isTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	return cli.NewProgress(cmd.ErrOrStderr(), time.Now)
}

// storeError gives an error of journaltool its exit code and adds what to do about it.
func storeError(err error, hint string) error {
	coded := func(code int, hint string) error { return &cli.Error{Code: code, Err: err, Hint: hint} }
	var damage *journal.DamageError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrLocked):
		return coded(cli.CodeConflict, "a server has it open; stop it first (SIGTERM)")
	case errors.Is(err, embedded.ErrNoJournal):
		return coded(cli.CodeNotFound, hint)
	case errors.Is(err, embedded.ErrThere):
		return coded(cli.CodeConflict, "a backup is made in a directory of its own, which must not be there before")
	case errors.Is(err, journaltool.ErrInside):
		return coded(cli.CodeUsage, "")
	case errors.Is(err, os.ErrPermission):
		return coded(cli.CodeNotAllowed, "it belongs to the user of the server; run this as that user")
	case errors.As(err, &damage):
		return coded(cli.CodeFailed, "'trunkline store verify' says what can be done about it")
	}
	return cli.Interrupted(err)
}
