package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/exacta/wire"
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

// Values of the flags of exacta serve.
const (
	clockReal  = "real"
	clockFixed = "fixed:"
	idsRandom  = "random"
	idsSeed    = "seed:"
)

// insists is how long after a first signal a second one ends the program at once (exacta §2.1).
const insists = time.Second

// exitInsisted is the exit code then.
const exitInsisted = 130

func newExactaServeCmd() *cobra.Command {
	var clock, ids string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer one request a line on stdin, with events between the answers",
		Long: "Answer requests about projects, one JSON object a line on stdin, on stdout. Ends with stdin, when all that was asked for is done.\n" +
			"A first SIGTERM or SIGINT pauses executions at their next step; a second one, a second later, ends the program at once.\n\n" +
			"--clock fixed:TIME and --ids seed:TEXT make the output of equal requests equal, for tests.",
		Example: "  trunkline exacta serve\n  trunkline exacta serve --clock fixed:2026-01-15T00:00:00Z --ids seed:t1 < requests.ndjson",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := exacta.Config{Version: obs.ReadBuild(version, revision).Version, Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
			if err := parseExacta(&c, clock, ids); err != nil {
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
	cmd.Flags().StringVar(&clock, "clock", clockReal, "real, or fixed:TIME")
	cmd.Flags().StringVar(&ids, "ids", idsRandom, "random, or seed:TEXT")
	return cmd
}

// parseExacta reads the flags of exacta serve.
func parseExacta(c *exacta.Config, clock, ids string) error {
	if text, fixed := strings.CutPrefix(clock, clockFixed); fixed {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return cli.Errorf(cli.CodeUsage, "cannot use the time %q", text).WithHint("such as --clock fixed:2026-01-15T00:00:00Z")
		}
		c.Clock = wire.FixedClock(at)
	} else if clock != clockReal {
		return cli.Errorf(cli.CodeUsage, "cannot use the clock %q", clock).WithHint("it is real or fixed:TIME")
	}
	seed, seeded := strings.CutPrefix(ids, idsSeed)
	if seeded && (seed == "" || len(seed) > wire.MaxSeed) || !seeded && ids != idsRandom {
		return cli.Errorf(cli.CodeUsage, "cannot use the ids %q", ids).WithHint("they are random or seed:TEXT, of 1 to 32 bytes")
	}
	if seeded {
		c.Seed = seed
	}
	return nil
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
