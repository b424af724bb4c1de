package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/handlers/exacta"
)

func newExactaCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "exacta",
		Short: "Serve projects: intents, plans that need an approval, and their execution",
		Long: "Open source projects, turn typed requests into plans of file and build steps, and run an approved plan with a way back for all\n" +
			"of its files.",
		Example: "  trunkline exacta serve",
	}, "serve", newExactaServeCmd())
}

// Flags of exacta serve.
const (
	flagClock = "clock"
	flagIDs   = "ids"
)

// insists is how long after a first signal a second one ends the program at once (exacta §2.1).
const insists = time.Second

// exitInsisted is the exit code then.
const exitInsisted = 130

func newExactaServeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer one request a line on stdin, with events between the answers",
		Long: "Answer requests about projects, one JSON object a line on stdin, on stdout. Ends with stdin, when all that was asked for is done.\n" +
			"A first SIGTERM or SIGINT pauses executions at their next step; a second one, a second later, ends the program at once.\n\n" +
			"--clock fixed:TIME and --ids seed:TEXT make the output of equal requests equal, for tests.",
		Example: "  trunkline exacta serve\n  trunkline exacta serve --clock fixed:2026-01-15T00:00:00Z --ids seed:t1 < requests.ndjson",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := exactaConfig(cmd)
			if err != nil {
				return err
			}
			ctx, stop := untilInsisted(cmd.Context())
			defer stop()
			out := &written{Writer: cmd.OutOrStdout()}
			exacta.New(c).ServeStdio(ctx, pipes{cmd.InOrStdin(), out})
			if out.failed() {
				return cli.Errorf(cli.CodeFailed, "cannot write to stdout")
			}
			return nil
		},
	}
	config.AddSourceFlags(cmd.Flags())
	cmd.Flags().String(flagClock, "real", "real, or fixed:TIME (exacta.clock)")
	cmd.Flags().String(flagIDs, "random", "random, or seed:TEXT (exacta.ids)")
	return cmd
}

// exactaConfig reads the settings of exacta serve. --clock and --ids win over exacta.clock and
// exacta.ids.
func exactaConfig(cmd *cobra.Command) (c exacta.Config, err error) {
	all, err := loadConfig(cmd)
	if err != nil {
		return c, err
	}
	for flag, setting := range map[string]*string{flagClock: &all.Exacta.Clock, flagIDs: &all.Exacta.IDs} {
		if f := cmd.Flags().Lookup(flag); f.Changed {
			*setting = f.Value.String()
		}
	}
	if c, err = all.Exacta.Server(); err != nil {
		return c, cli.AsUsage(err, "")
	}
	c.Logger, err = obs.NewLogger(cmd.ErrOrStderr(), all.Log.Level, all.Log.Format)
	return c, err
}

// untilInsisted returns a context that the first signal ends. A second one ends the program.
func untilInsisted(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE) // a reader that went away is a failed write; builds get the default
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		var first time.Time
		for range signals {
			if first.IsZero() {
				first = time.Now()
				cancel()
			} else if time.Since(first) >= insists {
				os.Exit(exitInsisted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(gone)
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}
