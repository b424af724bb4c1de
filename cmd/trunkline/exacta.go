package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/app"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/engine/procgroup"
	"trunkline/handlers/exacta"
)

func newExactaCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "exacta",
		Short: "Serve projects: intents, plans that need an approval, and their execution",
		Long: "Open source projects, turn typed requests into plans of file and build steps, and run an approved plan with a way back for all\n" +
			"of its files.",
		Example: "  trunkline exacta serve",
	}, "serve, call, schema, "+projectVerbs, append([]*cobra.Command{newExactaServeCmd(), newExactaCallCmd(), newExactaSchemaCmd()}, newProjectCmds()...)...)
}

// Flags of exacta serve.
const (
	flagClock = "clock"
	flagIDs   = "ids"
	flagTCP   = "tcp"
	flagUnix  = "unix"
	flagWS    = "ws"
)

// insists is how long after a first signal a second one ends the program at once (exacta §2.1).
const insists = time.Second

// exitInsisted is the exit code then.
const exitInsisted = 130

func newExactaServeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer one request a line on stdin, or on sockets, with events between the answers",
		Long: "Answer requests about projects, one JSON object a line on stdin, on stdout. Ends with stdin, when all that was asked for is done.\n" +
			"With --tcp, --unix or --ws the requests come over sockets instead; where it listens is printed to stderr.\n" +
			"A first SIGTERM or SIGINT pauses executions at their next step; a second one, a second later, ends the program at once.\n\n" +
			"--clock fixed:TIME and --ids seed:TEXT make the output of equal requests equal, for tests.",
		Example: "  trunkline exacta serve\n  trunkline exacta serve --clock fixed:2026-01-15T00:00:00Z --ids seed:t1 < requests.ndjson\n" +
			"  trunkline exacta serve --unix /run/exacta.sock --tcp 127.0.0.1:50070",
		Args: cobra.NoArgs,
		RunE: runExacta,
	}
	config.AddSourceFlags(cmd.Flags())
	cmd.Flags().String(flagClock, "real", "real, or fixed:TIME (exacta.clock)")
	cmd.Flags().String(flagIDs, "random", "random, or seed:TEXT (exacta.ids)")
	cmd.Flags().StringArray(flagTCP, nil, "listen on `host:port`; beyond loopback exacta.auth_token_file is needed")
	cmd.Flags().StringArray(flagUnix, nil, "listen on the unix socket `path`")
	cmd.Flags().StringArray(flagWS, nil, "listen for WebSockets on `host:port`")
	return cmd
}

func runExacta(cmd *cobra.Command, _ []string) error {
	all, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	c := &all.Exacta
	for flag, setting := range map[string]*string{flagClock: &c.Clock, flagIDs: &c.IDs} {
		if f := cmd.Flags().Lookup(flag); f.Changed {
			*setting = f.Value.String()
		}
	}
	log, _, err := obs.NewLogger(cmd.ErrOrStderr(), all.Log.Level, all.Log.Format)
	if err != nil {
		return cli.AsUsage(err, "")
	}
	sockets, err := exactaSockets(cmd, c)
	if err != nil {
		return err
	}
	ctx, stop := untilInsisted(cmd.Context())
	defer stop()
	if sockets {
		err = app.RunProjects(ctx, c, app.Options{Build: obs.ReadBuild(version, revision), Logger: log, Banner: cmd.ErrOrStderr()})
		if errors.Is(err, syscall.EADDRINUSE) {
			return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: "another program listens there already; --tcp, --unix and --ws name other addresses, port 0 takes a free one"}
		}
		return withHint(err)
	}
	server, err := c.Server()
	if err != nil {
		return cli.AsUsage(err, "")
	}
	server.Logger, server.Version = log, obs.ReadBuild(version, revision).Version
	out := &written{Writer: cmd.OutOrStdout()}
	exacta.New(server).ServeStdio(ctx, pipes{cmd.InOrStdin(), out})
	if err := out.first(); err != nil {
		return cli.Errorf(cli.CodeFailed, "cannot write to stdout: %v", err)
	}
	return nil
}

// exactaSockets puts the addresses of the command line in the place of those of the settings, which
// are for serve. It reports whether there are any.
func exactaSockets(cmd *cobra.Command, c *config.Exacta) (given bool, err error) {
	addr := func(flag string) []string {
		list, _ := cmd.Flags().GetStringArray(flag)
		if f := cmd.Flags().Lookup(flag); f.Changed {
			given = true
			if len(list) != 1 && err == nil { // an empty text is none
				err = cli.Errorf(cli.CodeUsage, "cannot use --%s %s: want one address", flag, f.Value)
			}
		}
		return list
	}
	c.ListenAddr, c.WSAddr = addr(flagTCP), addr(flagWS)
	for _, path := range addr(flagUnix) {
		whole, bad := filepath.Abs(path)
		c.ListenAddr, err = append(c.ListenAddr, "unix://"+whole), errors.Join(err, bad)
	}
	c.InsecureBind = true // the token is what counts here (exacta §2.1)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return given, cli.AsUsage(err, "")
	}
	return given, nil
}

// untilInsisted returns a context that the first signal ends. A second one ends the program.
func untilInsisted(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		var first time.Time
		for range signals {
			if first.IsZero() {
				first = time.Now()
				cancel()
			} else if time.Since(first) >= insists {
				procgroup.Started().Kill() // a build that hangs would hang on without its time limit
				os.Exit(exitInsisted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}
