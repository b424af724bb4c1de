package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/app"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
)

func newServeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: "Run a server until SIGTERM or SIGINT, then drain: readiness goes false, running requests are answered, streams are\n" +
			"flushed and ended. A second signal exits at once. Where it listens and whether data survives is printed to stderr.",
		Example: "  trunkline serve\n  trunkline serve --listen 127.0.0.1:0,unix:///run/trunkline.sock\n" +
			"  trunkline serve --set kernel.max_connections=10000",
		Args: cobra.NoArgs,
		RunE: runServe,
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

func runServe(cmd *cobra.Command, _ []string) error {
	c, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	log, err := obs.NewLogger(stderr, c.Log.Level, c.Log.Format)
	if err != nil {
		return cli.AsUsage(err, "")
	}
	ctx, stop := untilSignal(cmd.Context(), stderr, os.Exit)
	defer stop()
	return withHint(app.Run(ctx, c, app.Options{
		Build: obs.ReadBuild(version, revision), Logger: log, Banner: stderr,
	}))
}

// withHint says what to do about the two reasons that people meet when they start a server.
func withHint(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: "somebody listens there already; --listen, --http-listen and --admin-listen name other addresses, port 0 takes a free one"}
	case errors.Is(err, syscall.EACCES):
		return &cli.Error{Code: cli.CodeNotAllowed, Err: err, Hint: "this user may not open that address or file"}
	}
	return err
}

// untilSignal returns a context that ends at the first SIGTERM or SIGINT. The second one calls exit with the code of a
// failure: whoever sends it has waited long enough.
func untilSignal(parent context.Context, talk io.Writer, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n > 1 {
				_, _ = io.WriteString(talk, "trunkline: stopped by a second signal\n")
				exit(cli.CodeFailed)
				return
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
