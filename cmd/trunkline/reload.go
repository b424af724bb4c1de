package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/procgroup"
	"trunkline/handlers/ops"
)

// reloadTimeout is the default of reload --timeout: a key set of agent threads may take 5 s.
const reloadTimeout = 10 * time.Second

// reloadPoll is how often the outcome is asked for.
const reloadPoll = 20 * time.Millisecond

func newReloadCmd() *cobra.Command {
	f, timeout := new(statusFlags), time.Duration(0)
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have a running server read its settings again",
		Long: "Send SIGHUP to the server of this machine behind an admin endpoint,\n" +
			"and wait for the outcome. Certificates, tokens, limits and the log\n" +
			"level are taken over without losing a connection, all of them or, if\n" +
			"anything is wrong, none. 'trunkline config show' marks what takes a\n" +
			"restart instead.\n\n" +
			"The server reads what it was started with: its file, its flags, its\n" +
			"environment. Exit codes: 0 taken over, 1 refused, 4 not allowed to\n" +
			"signal it, 5 not reachable or no outcome in time.",
		Example: "  trunkline reload\n  trunkline reload --admin 127.0.0.1:50090 --json",
		Args:    cobra.NoArgs,
	}
	fs := cmd.Flags()
	f.addAdmin(fs)
	fs.DurationVar(&timeout, "timeout", reloadTimeout, "how long the outcome may take")
	config.AddSourceFlags(fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f.timeout = timeout
		if err := f.checkTimeout(); err != nil {
			return err
		}
		server, err := f.endpoint(cmd)
		if err != nil {
			return err
		}
		if server.addr == "" {
			return cli.Errorf(cli.CodeUsage, "cannot reload without an admin endpoint").WithHint("--admin names it; 'kill -HUP PID' needs none, and the server logs the outcome")
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		return runReload(ctx, cmd, server)
	}
	return cmd
}

func runReload(ctx context.Context, cmd *cobra.Command, server adminServer) error {
	var before ops.Reload
	if err := server.getJSON(ctx, "/reload", &before); errors.As(err, new(*cli.Error)) {
		return err
	} else if err != nil {
		return cli.Errorf(cli.CodeUnavailable, "%w", err).WithHint("is the server running? --admin names another address")
	}
	sent := time.Now()
	if err := hangUp(&before); err != nil {
		return err
	}
	r, err := awaitReload(ctx, server, &before, sent)
	if err != nil {
		return err
	}
	if !r.OK {
		return cli.Errorf(cli.CodeFailed, "the server keeps its settings: %s", r.Error)
	}
	rows := [][]string{{"process", fmt.Sprint(r.PID)}, {"changed", listText(r.Changed)}}
	if len(r.Restart) > 0 {
		rows = append(rows, []string{"restart", listText(r.Restart) + ": these take a restart"})
	}
	return cli.Show(cmd, r, rows)
}

// hangUp sends the signal to the process that answered. A number alone may be that of another
// process here, where the server runs in a container: so is the time at which it began compared.
func hangUp(r *ops.Reload) error {
	if !lives(r) {
		return cli.Errorf(cli.CodeUnavailable, "cannot find the server, process %d, on this machine", r.PID).
			WithHint("run this beside the server, in the same container; where that is not possible send it SIGHUP")
	}
	err := syscall.Kill(r.PID, syscall.SIGHUP)
	if errors.Is(err, syscall.EPERM) {
		return cli.Errorf(cli.CodeNotAllowed, "cannot signal the server, process %d: %w", r.PID, err).WithHint("it takes the user of the server, or root")
	}
	if err != nil {
		return cli.Errorf(cli.CodeUnavailable, "cannot signal the server, process %d: %w", r.PID, err)
	}
	return nil
}

// lives reports whether the process that answered is one of this machine.
func lives(r *ops.Reload) bool {
	return r.PID > 0 && r.Started != "" && procgroup.StartOf(r.PID) == r.Started
}

// awaitReload returns the outcome of the first reload that began after the signal was sent to the
// server of before.
func awaitReload(ctx context.Context, server adminServer, before *ops.Reload, sent time.Time) (*ops.Reload, error) {
	tick := time.NewTicker(reloadPoll)
	defer tick.Stop()
	for {
		r := new(ops.Reload)
		err := server.getJSON(ctx, "/reload", r)
		if err == nil && r.At != nil && !r.At.Before(sent) {
			return r, nil
		}
		if !lives(before) {
			return nil, cli.Errorf(cli.CodeUnavailable, "the server, process %d, has ended", before.PID)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, cli.Errorf(cli.CodeUnavailable, "the server has not reloaded in time").WithHint("while it reads its store it cannot; its log has the outcome")
		}
	}
}

func listText(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
