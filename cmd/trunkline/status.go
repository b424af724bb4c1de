package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
)

// statusFlags are the arguments of status; an empty address skips that part.
type statusFlags struct {
	addr, admin string
	timeout     time.Duration
	quiet       bool
}

func newStatusCmd() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask a running server how it is",
		Long: "Ask the admin endpoint whether the server is alive and ready, and the kernel endpoint what it holds. The addresses are\n" +
			"those a server with the same settings would listen on, unless flags name others. Exit code 5 means not reachable or not ready.",
		Args: cobra.NoArgs,
	}
	fs := cmd.Flags()
	fs.StringVar(&f.addr, "addr", "", "kernel endpoint, host:port or unix:///path (default the first of kernel.listen_addr)")
	fs.StringVar(&f.admin, "admin", "", "admin endpoint, host:port (default admin.listen_addr)")
	fs.DurationVar(&f.timeout, "timeout", 2*time.Second, "how long to wait for all answers together")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing, the exit code says it all")
	config.AddSourceFlags(fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runStatus(cmd, f) }
	return cmd
}

func runStatus(cmd *cobra.Command, f statusFlags) error {
	if err := f.fill(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	var s systemState
	if f.admin != "" {
		s.Admin = askAdmin(ctx, f.admin)
	}
	if f.addr != "" {
		s.Kernel = askKernel(ctx, f.addr)
	}
	err := s.verdict()
	s.OK = err == nil
	if f.quiet {
		return quietly(err)
	}
	if cli.JSON(cmd) {
		return errors.Join(cli.WriteJSON(cmd.OutOrStdout(), s), err)
	}
	return errors.Join(cli.WriteTable(cmd.OutOrStdout(), s.rows()), err)
}

// fill takes the addresses that no flag named from the settings.
func (f *statusFlags) fill(cmd *cobra.Command) error {
	c, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("admin") {
		f.admin = c.Admin.ListenAddr
	}
	if !cmd.Flags().Changed("addr") {
		f.addr = c.Kernel.ListenAddr[0]
	}
	for _, addr := range []string{f.addr, f.admin} {
		if _, port, err := net.SplitHostPort(addr); err == nil && port == "0" {
			return cli.Errorf(cli.CodeUsage, "cannot ask %s: port 0 is chosen when the server starts", addr).
				WithHint("the server prints its real addresses; name them with --addr and --admin")
		}
	}
	if f.addr == "" && f.admin == "" {
		return cli.Errorf(cli.CodeUsage, "cannot ask a server without an address")
	}
	return nil
}

// quietly keeps the exit code of err and drops its text.
func quietly(err error) error {
	if err == nil {
		return nil
	}
	return &cli.Error{Code: cli.Exit(err)}
}
