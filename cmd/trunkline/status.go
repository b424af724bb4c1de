package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/transcode"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// statusFlags are the arguments of status; an empty address skips that part.
type statusFlags struct {
	peerFlags
	adminFlags
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
		Short: "Show the state of a running server",
		Long: "Ask the admin endpoint whether the server is alive and ready, and the kernel endpoint what it holds. The addresses are\n" +
			"those of the context, or those a server with the same settings would listen on, unless $" + envAddr + " or flags name others; --addr= and --admin= skip a\n" +
			"part. Exit code 5 means not reachable or not ready.\n\n" +
			"--digest condenses all that the server keeps into numbers, in parts and as one: the same before a restart and after it,\n" +
			"and on a server with a restored copy. It is of one moment only if nothing changes meanwhile: stop the clients first. Where\n" +
			"there is a store, status says if something was written during the walk. A dequeue lease that ends is a change too.",
		Example: "  trunkline status\n  trunkline status --digest\n  trunkline status --addr unix:///run/trunkline.sock --admin= --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd, statusTimeout)
	fs := cmd.Flags()
	f.addAdmin(fs)
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
	return errors.Join(cli.Show(cmd, s, s.rows()), err)
}

// parts checks the flags, takes the addresses that none of them named from the environment and the
// settings, and returns what asks each part.
func (f *statusFlags) parts(cmd *cobra.Command) (ask func(context.Context) *systemState, err error) {
	if err := f.checkTimeout(); err != nil {
		return nil, err
	}
	var admin adminServer
	if f.quiet { // probes have the verdict, and take no token
		admin.addr, _, err = f.adminFlags.where(cmd)
	} else {
		admin, err = f.endpoint(cmd)
	}
	if err != nil {
		return nil, err
	}
	var addr string
	var secure ipcclient.Option
	if skipped := f.addr == "" && (cmd.Flags().Changed("addr") || notInContext(cmd)); !skipped {
		if addr, secure, err = f.peerFlags.where(cmd); err != nil {
			return nil, err
		}
	}
	if f.digest && addr == "" {
		return nil, cli.Errorf(cli.CodeUsage, "cannot ask for a digest without the kernel endpoint").WithHint("--addr names it")
	}
	if addr == "" && admin.addr == "" {
		return nil, cli.Errorf(cli.CodeUsage, "cannot ask a server without an address").WithHint("--addr and --admin name its endpoints")
	}
	return func(ctx context.Context) *systemState {
		s := new(systemState)
		if admin.addr != "" {
			s.Admin = askAdmin(ctx, admin, f.quiet)
		}
		switch {
		case addr == "":
		case s.Admin.recovering():
			s.Kernel = &kernelState{Addr: addr, Error: "not asked: the server accepts no connection before it has read its store"}
		default:
			s.Kernel = f.askKernel(ctx, addr, secure)
		}
		return s
	}, nil
}

// quietly keeps the exit code of err and drops its text.
func quietly(err error) error {
	if err == nil {
		return nil
	}
	return &cli.Error{Code: cli.Exit(err)}
}

// adminState is the reply of the admin endpoint; Error is set when it did not answer.
type adminState struct {
	Addr    string    `json:"addr"`
	Error   string    `json:"error,omitempty"`
	Alive   bool      `json:"alive"`
	Ready   bool      `json:"ready"`
	Reasons []string  `json:"reasons"`
	Build   obs.Build `json:"build"`
	// Recovery is there while the server reads its store.
	Recovery *ops.Recovery `json:"recovery,omitempty"`
	// Store is missing where the server is older than that question.
	Store *ops.Store `json:"store,omitempty"`

	err error
}

// recovering reports whether the server does not accept clients yet.
func (s *adminState) recovering() bool { return s != nil && s.Recovery != nil }

// kernelState is the reply of kernel.GetSystemStatus, as JSON of the reply's own keys.
type kernelState struct {
	Addr   string          `json:"addr"`
	Error  string          `json:"error,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`
	// Digest is one number for all the digests in Status.
	Digest string `json:"digest,omitempty"`

	reply ipcclient.Status
	hint  string // what to do about Error
}

// systemState is the document of status --json. A part that was not asked is null.
type systemState struct {
	OK     bool         `json:"ok"`
	Admin  *adminState  `json:"admin"`
	Kernel *kernelState `json:"kernel"`
}

// askAdmin asks for all of the state, or only for what probes show.
func askAdmin(ctx context.Context, server adminServer, probes bool) *adminState {
	s := &adminState{Addr: server.addr, Reasons: []string{}}
	var health ops.Health
	var ready ops.Ready
	s.err = errors.Join(server.getJSON(ctx, "/healthz", &health), server.getJSON(ctx, "/readyz", &ready))
	if s.err == nil && !probes {
		s.err = errors.Join(server.getJSON(ctx, "/version", &s.Build), s.askStore(ctx, server))
	}
	if s.err != nil {
		first, _, _ := strings.Cut(s.err.Error(), "\n")
		s.Error = first
		return s
	}
	s.Alive, s.Ready, s.Reasons, s.Recovery = health.Alive, ready.Ready, ready.Reasons, ready.Recovery
	if health.Error != "" {
		s.Reasons = append(s.Reasons, health.Error)
	}
	return s
}

// askStore asks for the store, which servers of before could not be asked for.
func (s *adminState) askStore(ctx context.Context, server adminServer) error {
	store := new(ops.Store)
	err := server.getJSON(ctx, "/store", store)
	switch {
	case err == nil:
		s.Store = store
	case errors.Is(err, errNoPath):
		return nil
	}
	return err
}

func (f *statusFlags) askKernel(ctx context.Context, addr string, secure ipcclient.Option) *kernelState {
	s := &kernelState{Addr: addr}
	if err := s.ask(ctx, f, secure); err != nil {
		err = f.explain(err)
		s.Error = err.Error()
		var e *cli.Error
		if errors.As(err, &e) {
			s.hint = e.Hint
		}
	}
	return s
}

func (s *kernelState) ask(ctx context.Context, f *statusFlags, secure ipcclient.Option) error {
	conn, err := ipcclient.Dial(ctx, s.Addr, secure)
	if err != nil {
		return err
	}
	defer conn.Close()
	question, _ := (&ipcclient.GetSystemStatus{Digest: f.digest}).MarshalMsg(nil)
	var body []byte
	err = f.ask(ctx, conn, func(ctx context.Context) error {
		body, err = conn.Call(ctx, "kernel", "GetSystemStatus", question)
		return err
	})
	if err == nil {
		_, err = s.reply.UnmarshalMsg(body)
	}
	if err == nil {
		s.Status, err = transcode.AppendJSON(nil, body)
	}
	switch {
	case err == nil && f.digest && s.reply.Digest == nil:
		err = errors.New("the server gives no digest: it is older than this question")
	case err == nil && f.digest:
		s.Digest = digestNumber(s.reply.Digest)
	}
	if err != nil {
		return fmt.Errorf("cannot get the kernel's status from %s: %w", s.Addr, err)
	}
	return nil
}

// verdict returns the first thing that is wrong, as the command's error.
func (s *systemState) verdict() error {
	var refused *cli.Error
	switch {
	case s.Admin != nil && errors.As(s.Admin.err, &refused):
		return refused
	case s.Admin != nil && s.Admin.Error != "":
		return cli.Errorf(cli.CodeUnavailable, "%s", s.Admin.Error).WithHint("is the server running? --admin names another address, --admin= skips this part")
	case s.Admin != nil && !s.Admin.Alive:
		return cli.Errorf(cli.CodeUnavailable, "the server is not alive: %s", strings.Join(s.Admin.Reasons, ", "))
	case s.Admin.recovering():
		return cli.Errorf(cli.CodeUnavailable, "the server is not ready: recovering (%s)", s.Admin.howFar()).WithHint("it reads its store and will be; clients that connect wait")
	case s.Admin != nil && !s.Admin.Ready:
		return cli.Errorf(cli.CodeUnavailable, "the server is not ready: %s", strings.Join(s.Admin.Reasons, ", "))
	case s.Kernel != nil && s.Kernel.Error != "":
		return cli.Errorf(cli.CodeUnavailable, "%s", s.Kernel.Error).WithHint(strings.TrimSpace(s.Kernel.hint + "\n--addr= skips this part"))
	}
	return nil
}
