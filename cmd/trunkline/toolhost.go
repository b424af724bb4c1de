package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/toolset"
	"trunkline/codec/jsonx"
	"trunkline/engine/reactor"
	"trunkline/engine/stream"
	"trunkline/handlers/toolhost"
)

// The modes of the tool server (toolhost §2.1): what its clients put first on the command line.
const (
	modeList  = "--list"
	modeRun   = "--run"
	modeServe = "--serve"
	modeExec  = "tool_exec"
)

const toolUsage = "Usage:\n" + toolModes

// toolModes are the command lines of the modes.
const toolModes = `  trunkline --list <plugin>
  trunkline --run <plugin> <aid>        request on stdin
  trunkline --serve <plugin> [--plugin <p>]... [--listen <addr>]... [--stdin]
                                        one request a line
  trunkline tool_exec <aid>             request on stdin

<plugin> is builtin, a toolpack manifest (.json) or a directory of them; <addr>
is tcp://host:port or unix:///path.
`

// toolExits are the exit codes of the modes, which are those of their contract (toolhost §2.1).
const toolExits = `
Exit codes of these modes, which are not those of other commands:
  0  the tool was run, whatever came of it: look at "status" in the reply;
     of tool_exec also when there is no such tool; --serve: the end of its input
  1  the reply could not be written
  2  usage
  3  a plugin cannot be used (--run, --list, --serve)
  4  there is no such tool (--run)
  5  what came on stdin is no JSON object, or its fields cannot be used
`

// fastTools answers the modes of the tool server before anything else is built. done is false for
// everything else.
func fastTools(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, done bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch mode := args[0]; {
	case mode == modeExec:
		if len(args) != 2 || strings.HasPrefix(args[1], "-") {
			if wantsHelp(args[1:]) {
				return 0, false
			}
			return usage(stderr, "want one argument, <aid>"), true
		}
		return toolExec(args[1], stdin, stdout, stderr), true
	case mode == modeList, mode == modeRun, mode == modeServe:
		if len(args) < 2 {
			return usage(stderr, "missing argument <plugin>"), true
		}
	case len(args) < 2 || !strings.HasPrefix(mode, "--") || isRootFlag(mode):
		return 0, false
	}
	return toolMode(args[0], args[1], args[2:], stdin, stdout, stderr), true
}

func wantsHelp(args []string) bool { return len(args) > 0 && (args[0] == "-h" || args[0] == "--help") }

// isRootFlag separates the program's own flags from an unknown mode.
func isRootFlag(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	root := newRootCmd()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	return name == "" || root.Flags().Lookup(name) != nil || root.PersistentFlags().Lookup(name) != nil
}

func usage(stderr io.Writer, wrong string) int {
	fmt.Fprintf(stderr, "trunkline: %s\n%s", wrong, toolUsage)
	return toolhost.ExitUsage
}

// fault writes a protocol error to stdout.
func fault(stdout, stderr io.Writer, text string, code int) int {
	line := append(jsonx.AppendString([]byte(`{"ok":false,"error":`), text), "}\n"...)
	return answer(stdout, stderr, line, code)
}

// answer writes the one line of a reply. That it is lost shows in the exit code, and on stderr
// unless its reader has gone.
func answer(stdout, stderr io.Writer, line []byte, code int) int {
	_, err := stdout.Write(line)
	return lost(stderr, err, code)
}

// lost returns the exit code of a mode that had code, and err from its stdout.
func lost(stderr io.Writer, err error, code int) int {
	if err != nil && !cli.ReaderGone(err) {
		fmt.Fprintf(stderr, "trunkline: cannot write the reply: %v\n", err)
	}
	if err != nil && code == toolhost.ExitOK {
		return 1
	}
	return code
}

// toolMode runs the modes that name a plugin; it is loaded first.
func toolMode(mode, plugin string, rest []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var serve *serveFlags
	if mode == modeServe {
		var ok bool
		if serve, ok = parseServe(rest, stderr); !ok {
			return toolhost.ExitUsage
		}
	}
	o := toolset.Options{Plugins: []string{plugin}, BreakerThreshold: -1, BreakerCooldown: -1}
	serve.apply(&o)
	set, err := toolset.Open(o)
	if err != nil {
		return fault(stdout, stderr, err.Error(), toolhost.ExitPlugin)
	}
	defer set.Close()
	switch mode {
	case modeList:
		return answer(stdout, stderr, (&toolhost.Single{Registry: set.Registry, Unusable: set.Unusable()}).List(), toolhost.ExitOK)
	case modeRun:
		if len(rest) == 0 || rest[0] == "" {
			return fault(stdout, stderr, "missing aid", toolhost.ExitUsage)
		}
		single := toolhost.Single{Registry: set.Registry, Timeout: toolset.ToolTimeout()}
		line, code := single.Run(rest[0], stdin)
		return answer(stdout, stderr, line, code)
	case modeServe:
		return serveTools(set, serve, stdin, stdout, stderr)
	}
	return fault(stdout, stderr, "unknown mode: "+mode, toolhost.ExitUsage)
}

// toolExec is the mode tool_exec: all built-in tools, and those of the root's own toolpack.
func toolExec(aid string, stdin io.Reader, stdout, stderr io.Writer) int {
	o := toolset.Options{Builtins: true, BreakerThreshold: -1, BreakerCooldown: -1}
	root := os.Getenv("MACHINA_ROOT")
	root = cmp.Or(root, ".")
	if pack := toolset.Tier0(root); pack != "" {
		o.Plugins = []string{pack}
	}
	set, err := toolset.Open(o)
	if err != nil {
		return fault(stdout, stderr, err.Error(), toolhost.ExitPlugin)
	}
	defer set.Close()
	single := toolhost.Single{Registry: set.Registry, Timeout: toolset.ToolTimeout(), Exec: true}
	line, code := single.Run(aid, stdin)
	return answer(stdout, stderr, line, code)
}

// newToolExecCmd makes the verb that help and completion show; fastTools answers it.
func newToolExecCmd() *cobra.Command {
	return &cobra.Command{
		Use:   modeExec + " AID",
		Short: "Run one tool, its request on stdin (modes " + modeList + ", " + modeRun + ", " + modeServe + " as well)",
		Long:  fmt.Sprintf("Run one tool with the request on stdin and print one line of JSON. With the other modes:\n\n%s%s", toolModes, toolExits),
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// serveFlags are the arguments of --serve (toolhost §2.1, §6).
type serveFlags struct {
	plugins, listen     texts
	stdin               bool
	ttl, timeout        int
	threshold, cooldown int
}

type texts []string

func (t *texts) String() string     { return strings.Join(*t, ",") }
func (t *texts) Set(s string) error { *t = append(*t, s); return nil }

func parseServe(args []string, stderr io.Writer) (f *serveFlags, ok bool) {
	f = new(serveFlags)
	fs := flag.NewFlagSet(modeServe, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Var(&f.plugins, "plugin", "")
	fs.Var(&f.listen, "listen", "")
	fs.BoolVar(&f.stdin, "stdin", false, "")
	fs.IntVar(&f.ttl, "idemp-ttl-ms", 0, "")
	fs.IntVar(&f.timeout, "tool-timeout-ms", 0, "")
	fs.IntVar(&f.threshold, "breaker-threshold", -1, "")
	fs.IntVar(&f.cooldown, "breaker-cooldown-ms", -1, "")
	err := fs.Parse(args)
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err == nil && (f.ttl < 0 || f.timeout < 0 || f.timeout > int(toolhost.MaxToolTimeout/time.Millisecond)) {
		err = errors.New("a time is out of range")
	}
	if err != nil {
		fmt.Fprintf(stderr, "trunkline: cannot serve: %v\nhint: run 'trunkline %s --help' for usage\n", err, modeExec)
		return nil, false
	}
	return f, true
}

func (f *serveFlags) apply(o *toolset.Options) {
	if f == nil {
		return
	}
	o.Plugins = append(o.Plugins, f.plugins...)
	o.BreakerThreshold = f.threshold
	if f.cooldown >= 0 {
		o.BreakerCooldown = time.Duration(f.cooldown) * time.Millisecond
	}
}

// serveTools answers lines on stdin, on sockets, or on both, until the stream ends or a signal
// comes.
func serveTools(set *toolset.Set, f *serveFlags, stdin io.Reader, stdout, stderr io.Writer) int {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := set.ServerConfig(toolhost.Config{Logger: log,
		IdempotencyTTL: time.Duration(
			f.ttl,
		) * time.Millisecond, ToolTimeout: time.Duration(f.timeout) * time.Millisecond})
	if err != nil {
		return fault(stdout, stderr, err.Error(), toolhost.ExitPlugin)
	}
	set.Warn(log)
	c.Files = stream.NewFiles()
	srv := toolhost.New(c)
	defer srv.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	out := &written{Writer: stdout}
	if len(f.listen) > 0 {
		return serveToolSockets(ctx, srv, c.Files, f, stdin, out, stderr, log)
	}
	serveToolStdin(ctx, srv, stdin, out, log)
	rest, cancel := context.WithTimeout(context.Background(), drainTools)
	defer cancel()
	srv.Drain(rest)
	return lost(stderr, out.first(), toolhost.ExitOK)
}

// pipes is stdin and stdout as one transport.
type pipes struct {
	io.Reader
	io.Writer
}

// Close has a Read of stdin return where the system can.
func (p pipes) Close() error {
	if c, ok := p.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func serveToolStdin(ctx context.Context, srv *toolhost.Server, stdin io.Reader, stdout io.Writer, log *slog.Logger) {
	host := stream.NewHost(stream.Config{Limits: toolhost.StdinLimits(), Open: srv.OpenStdin, Logger: log})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = host.Serve(pipes{stdin, stdout}, "stdin")
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		host.Drain()
		select { // the goroutine that reads stdin may stay until stdin has input
		case <-ended:
		case <-time.After(drainTools):
		}
	}
}

// drainTools is how long a drain may take: the sessions' own time, and a moment more.
const drainTools = 11 * time.Second

func serveToolSockets(ctx context.Context, srv *toolhost.Server, files *stream.Files, f *serveFlags, stdin io.Reader, stdout, stderr io.Writer, log *slog.Logger) int {
	var lns []net.Listener
	closeAll := func() {
		for _, ln := range lns {
			_ = ln.Close()
		}
	}
	for _, addr := range f.listen {
		opened, err := listenTools(addr)
		if err != nil {
			closeAll()
			fmt.Fprintf(stderr, "trunkline: cannot listen: %v\n", err)
			return toolhost.ExitUsage
		}
		lns = append(lns, opened...)
	}
	loops, err := reactor.New(reactor.Config{Config: stream.Config{MaxConnections: toolhost.DefaultConnections, Files: files, Limits: srv.SocketLimits(), Open: srv.OpenSocket,
		Refuse: toolhost.AppendRefusal, Logger: log}})
	if err != nil {
		closeAll()
		fmt.Fprintf(stderr, "trunkline: %v\n", err)
		return 1
	}
	for _, ln := range lns {
		fmt.Fprintf(stderr, "toolhost listening on %s://%s\n", ln.Addr().Network(), ln.Addr())
		go func() { _ = loops.Serve(ln) }()
	}
	ctx, stop := context.WithCancel(ctx)
	var streams sync.WaitGroup
	if f.stdin {
		streams.Go(func() { serveToolStdin(ctx, srv, stdin, stdout, log) })
	}
	code := toolhost.ExitOK
	select {
	case <-ctx.Done():
	case err := <-loops.Done():
		fmt.Fprintf(stderr, "trunkline: %v\n", err)
		code = 1
	}
	stop() // stdin is drained at the same time
	shut, cancel := context.WithTimeout(context.Background(), drainTools)
	defer cancel()
	_ = loops.Shutdown(shut)
	streams.Wait()
	srv.Drain(shut)
	return code
}

// listenTools opens an address. Beyond this machine every client needs a token (toolhost §2.3).
func listenTools(addr string) ([]net.Listener, error) {
	if strings.HasPrefix(addr, "unix://") {
		ln, err := reactor.Listen(addr)
		return []net.Listener{ln}, err
	}
	hostPort, ok := strings.CutPrefix(addr, "tcp://")
	if !ok {
		return nil, fmt.Errorf("%q is neither tcp://host:port nor unix:///path", addr)
	}
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	ip := net.ParseIP(host)
	if local := strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback(); !local && os.Getenv("MACHINA_API_TOKEN") == "" {
		return nil, fmt.Errorf("%s can be reached from other machines, and MACHINA_API_TOKEN is not set", addr)
	}
	return reactor.ListenLocal(hostPort)
}
