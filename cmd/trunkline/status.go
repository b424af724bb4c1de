package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ipc/client"
)

// statusFlags are the arguments of status; an empty address skips that part.
type statusFlags struct {
	peerFlags
	admin  string
	quiet  bool
	digest bool
}

// statusTimeout is the default of --timeout for a question that a healthy server answers at once,
// digestTimeout for one that has it walk over all it holds.
const (
	statusTimeout = 2 * time.Second
	digestTimeout = 60 * time.Second
)

func newStatusCmd() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask a running server how it is",
		Long: "Ask the admin endpoint whether the server is alive and ready, and the kernel endpoint what it holds. The addresses are\n" +
			"those a server with the same settings would listen on, unless $" + envAddr + " or flags name others; --addr= and --admin= skip a\n" +
			"part. Exit code 5 means not reachable or not ready.\n\n" +
			"--digest condenses all that the server keeps into numbers, in parts and as one: the same before a restart and after it,\n" +
			"and on a server with a restored copy. It is of one moment only if nothing changes meanwhile: stop the clients first. Where\n" +
			"there is a store, status says if something was written during the walk. A dequeue lease that ends is a change too.",
		Example: "  trunkline status\n  trunkline status --digest\n  trunkline status --addr unix:///run/trunkline.sock --admin= --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd, statusTimeout)
	fs := cmd.Flags()
	fs.StringVar(&f.admin, "admin", "", "admin endpoint, host:port (default admin.listen_addr)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing, the exit code says it all")
	fs.BoolVar(&f.digest, "digest", false, "ask for a digest of what is kept, to compare (default of --timeout is then "+digestTimeout.String()+")")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runStatus(cmd, &f) }
	return cmd
}

func runStatus(cmd *cobra.Command, f *statusFlags) error {
	if f.digest && !cmd.Flags().Changed("timeout") {
		f.timeout = digestTimeout
	}
	ask, err := f.parts(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	s := ask(ctx)
	err = s.verdict()
	s.OK = err == nil
	if f.quiet {
		return quietly(err)
	}
	if cli.JSON(cmd) {
		return errors.Join(cli.WriteJSON(cmd.OutOrStdout(), s), err)
	}
	return errors.Join(cli.WriteTable(cmd.OutOrStdout(), s.rows()), err)
}

// parts checks the flags, takes the addresses that none of them named from the environment and the
// settings, and returns what asks each part.
func (f *statusFlags) parts(cmd *cobra.Command) (ask func(context.Context) *systemState, err error) {
	if err := f.checkTimeout(); err != nil {
		return nil, err
	}
	admin, err := f.adminAddr(cmd)
	if err != nil {
		return nil, err
	}
	var addr string
	var secure client.Option
	if skipped := cmd.Flags().Changed("addr") && f.addr == ""; !skipped {
		if addr, secure, err = f.where(cmd); err != nil {
			return nil, err
		}
	}
	if f.digest && addr == "" {
		return nil, cli.Errorf(cli.CodeUsage, "cannot ask for a digest without the kernel endpoint").WithHint("--addr names it")
	}
	if addr == "" && admin == "" {
		return nil, cli.Errorf(cli.CodeUsage, "cannot ask a server without an address").WithHint("--addr and --admin name its endpoints")
	}
	return func(ctx context.Context) *systemState {
		s := new(systemState)
		if admin != "" {
			s.Admin = askAdmin(ctx, admin)
		}
		switch {
		case addr == "":
		case s.Admin.recovering():
			s.Kernel = &kernelState{Addr: addr, Error: "not asked: the server accepts nobody before it has read its store"}
		default:
			s.Kernel = f.askKernel(ctx, addr, secure)
		}
		return s
	}, nil
}

// adminAddr returns where to ask, "" for not at all.
func (f *statusFlags) adminAddr(cmd *cobra.Command) (string, error) {
	addr := f.admin
	if !cmd.Flags().Changed("admin") {
		c, err := loadConfig(cmd)
		if err != nil {
			return "", err
		}
		addr = c.Admin.ListenAddr
	}
	if addr != "" && (strings.HasPrefix(addr, "unix://") || config.CheckAddr(addr) != nil) {
		return "", cli.Errorf(cli.CodeUsage, "cannot ask %q: want host:port", addr).
			WithHint("--admin is an address like 127.0.0.1:50090, --admin= skips this part")
	}
	if chosenLater(addr) {
		return "", cli.Errorf(cli.CodeUsage, "cannot ask %s: port 0 is chosen when the server starts", addr).
			WithHint("the server prints its real address; name it with --admin")
	}
	return addr, nil
}

// quietly keeps the exit code of err and drops its text.
func quietly(err error) error {
	if err == nil {
		return nil
	}
	return &cli.Error{Code: cli.Exit(err)}
}
