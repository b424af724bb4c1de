package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/doctor"
	"trunkline/engine/obs"
)

func newDoctorCmd() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a server with these settings meets on this machine",
		Long: "Look at the store's directory and its disk, free space, limits, addresses, certificates, keys, clock, memory and processors, " +
			"and at the server itself where one runs with these settings. Each check has a result, what was seen, and what to do. " +
			"Nothing is changed: files are made and removed in the store's directory, and each free address is opened for a moment.\n\n" +
			"Run it as the user of the server, with the same flags, environment and settings file. " +
			"Exit code 1 means that a check failed; a warning is no failure. Wrong settings are a failed check, not a usage error.",
		Example: "  trunkline doctor\n  trunkline doctor --config /etc/trunkline/trunkline.yaml --json\n  trunkline doctor --quiet || echo 'not fit to serve'",
		Args:    cobra.NoArgs,
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing, the exit code has the result")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, quiet) }
	return cmd
}

func runDoctor(cmd *cobra.Command, quiet bool) error {
	c, err := config.Load(cmd.Flags(), os.Environ())
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	var token string
	if err == nil {
		viewer, operator, _ := c.Admin.ConsoleTokens() // a check looks at the files
		token = cmp.Or(viewer, operator)
	}
	ask := func(ctx context.Context, addr, path string, into any) error {
		return adminServer{addr, token}.getJSON(ctx, path, into)
	}
	r := doctor.Run(ctx, doctor.Options{Config: c, Err: err, Build: obs.ReadBuild(version, revision), Ask: ask,
		Getenv: os.Getenv})
	if ctx.Err() != nil {
		return cli.Interrupted(ctx.Err())
	}
	switch {
	case quiet && r.OK:
		return nil
	case quiet:
		return &cli.Error{Code: cli.CodeFailed}
	case r.OK:
		return showChecks(cmd, r)
	}
	failed := cli.Errorf(cli.CodeFailed, "%d of %d checks failed", r.Failures, len(r.Checks)).WithHint("each check that failed has a fix")
	return errors.Join(showChecks(cmd, r), failed)
}

// Widths of the columns of doctor, and of its lines.
const (
	resultWidth  = 9
	checkWidth   = 19
	doctorWidth  = 80
	foundAtWidth = resultWidth + checkWidth
)

// showChecks prints a report; for people with the evidence and the fix of a check below each other.
func showChecks(cmd *cobra.Command, r *doctor.Report) error {
	if cli.JSON(cmd) {
		return cli.WriteJSON(cmd.OutOrStdout(), r)
	}
	var b strings.Builder
	for _, f := range r.Checks {
		text := f.Evidence
		if f.Subject != "" {
			text = f.Subject + ": " + text
		}
		if f.Fix != "" {
			text += "\nfix: " + f.Fix
		}
		var lines []string
		for part := range strings.SplitSeq(text, "\n") {
			lines = append(lines, cli.Wrap(cli.Visible(part), doctorWidth-foundAtWidth)...)
		}
		for i, line := range lines {
			if i == 0 {
				fmt.Fprintf(&b, "%-*s%-*s%s\n", resultWidth, f.Result, checkWidth, f.ID, line)
			} else {
				fmt.Fprintf(&b, "%*s%s\n", foundAtWidth, "", line)
			}
		}
	}
	fmt.Fprintf(&b, "%d checks, %d failed, %d with a warning\n", len(r.Checks), r.Failures, r.Warnings)
	if _, err := cmd.OutOrStdout().Write([]byte(b.String())); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}
