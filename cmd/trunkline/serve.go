package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/app"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/systemd"
	"trunkline/engine/cluster/control"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/obs"
)

const flagRecoverTo = "recover-to-index"

// devFile is where --dev writes the tokens of agent threads, in the working directory.
const devFile = "trunkline-dev.mcp.json"

func newServeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: "Run a server until SIGTERM or SIGINT, then drain: readiness goes false, running requests are answered, streams are\n" +
			"flushed and ended. A second signal, a second or more after the first, exits at once. SIGHUP has the settings read again,\n" +
			"see 'trunkline reload'.\n\n" +
			"State is kept in ./trunkline-data (store.dir): whatever was answered survives the death of the process and a power loss.\n" +
			"--dev keeps nothing. Where it listens and what survives is printed to stderr.",
		Example: "  trunkline serve\n  trunkline serve --dev\n  trunkline serve --listen 127.0.0.1:0,unix:///run/trunkline.sock\n" +
			"  trunkline serve --set store.dir=/var/lib/trunkline --set kernel.max_connections=10000",
		Args: cobra.NoArgs,
		RunE: runServe,
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().Uint64(flagRecoverTo, 0, "give up for good what a damaged store holds after this index (the error says which); for one start")
	return cmd
}

func runServe(cmd *cobra.Command, _ []string) error {
	sockets, err := systemd.Open()
	if err != nil {
		return cli.AsUsage(err, "")
	}
	addrs := sockets.Addrs()
	c, err := config.LoadWithSockets(cmd.Flags(), os.Environ(), addrs)
	if err := settingsRead(cmd, c, err); err != nil {
		return err
	}
	recoverTo, err := recoverTo(cmd, c)
	if err != nil {
		return err
	}
	stderr := &obs.LogSink{Writer: cmd.ErrOrStderr()}
	log, level, err := obs.NewLogger(stderr, c.Log.Level, c.Log.Format)
	if err != nil {
		return cli.AsUsage(err, "")
	}
	running, end := context.WithCancel(cmd.Context())
	defer end()
	ctx, stop := untilSignal(running, stderr, os.Exit)
	defer stop()
	hangup, quiet := untilHangup(end)
	defer quiet()
	o := app.Options{
		Build: obs.ReadBuild(version, revision), Logger: log, Banner: stderr, LinesDropped: stderr.Dropped, RecoverTo: recoverTo,
		Hangup: hangup, LogLevel: level, Reload: func() (*config.Config, error) {
			return config.LoadWithSockets(cmd.Flags(), os.Environ(), addrs)
		},
		DevFile: devFile, Sockets: sockets, Notify: systemd.Notify, Watchdog: systemd.WatchdogInterval(), Again: os.Getenv(againVariable) != "",
	}
	if c.Store.Mode != config.StoreMemory {
		o.Recovered = spareProcessors
	}
	err = app.Run(ctx, c, o)
	if errors.Is(err, control.ErrOwnershipLost) && sockets == nil && ctx.Err() == nil {
		return startAgain(ctx, log, err)
	}
	return withHint(err)
}

// startAgain replaces this process by a new one with the same command, as a node whose server has
// stopped needs. One with sockets of a supervisor ends instead, and is started by that.
func startAgain(ctx context.Context, log *slog.Logger, why error) error {
	log.Warn("starting again", "error", why)
	select {
	case <-time.After(againPause):
	case <-ctx.Done():
		return nil
	}
	err := execAgain(argsAgain(os.Args), append(os.Environ(), againVariable+"=1"))
	return errors.Join(why, fmt.Errorf("cannot start again: %w", err))
}

// againPause is left before a new start, which may fail for the same reason.
const againPause = time.Second

// againVariable is in the environment of a process that has replaced one.
const againVariable = "_TRUNKLINE_AGAIN"

// argsAgain returns args without what is for one start.
func argsAgain(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(args[i], "=")
		if name != "--"+flagRecoverTo {
			out = append(out, args[i])
		} else if !whole {
			i++
		}
	}
	return out
}

// recoverTo returns what --recover-to-index gives up, 0 for nothing. It is no setting: what an
// operator decides about one damage must not be waiting in a file or an environment for the next
// one.
func recoverTo(cmd *cobra.Command, c *config.Config) (journal.Index, error) {
	f := cmd.Flags().Lookup(flagRecoverTo)
	if !f.Changed {
		return 0, nil
	}
	n, err := cmd.Flags().GetUint64(flagRecoverTo)
	if err != nil {
		return 0, err
	}
	refuse := func(why string) (journal.Index, error) {
		return 0, cli.Errorf(cli.CodeUsage, "cannot use --%s %d: %s", flagRecoverTo, n, why)
	}
	switch {
	case c.Store.Mode == config.StoreMemory:
		return refuse("store.mode is memory, there is nothing to recover")
	case n == 0:
		return refuse("indexes start at 1; to give up everything, move store.dir away")
	}
	return journal.Index(n), nil
}

// withHint adds what to do about the common reasons for which a server does not start.
func withHint(err error) error {
	if hint := app.Hint(err); hint != "" {
		return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: hint}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &cli.Error{Code: cli.CodeFailed, Err: err,
			Hint: "another program listens there already; --listen, --http-listen, --threads-listen, --set threads.lines_addr= " +
				"and --admin-listen name other addresses, port 0 takes a free one"}
	case errors.Is(err, os.ErrPermission): // EACCES and EPERM
		return &cli.Error{Code: cli.CodeNotAllowed, Err: err, Hint: "this user may not open that address, file or directory"}
	case errors.Is(err, syscall.EROFS):
		return &cli.Error{Code: cli.CodeNotAllowed, Err: err, Hint: "the file system is mounted for reading only"}
	case errors.Is(err, embedded.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "the disk has no room, no inodes, or the quota is used up: 'df' and 'df -i' say which"}
	}
	return err
}

// signalPause is how long after the first signal another one does not count. One order to stop may
// arrive twice: timeout(1) signals the process and then its group.
const signalPause = time.Second

// untilSignal returns a context that ends at the first SIGTERM or SIGINT. One that comes
// signalPause later or after that calls exit with the code of a failure: the sender does not want
// to wait any longer.
func untilSignal(parent context.Context, talk io.Writer, exit func(int)) (context.Context, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ctx, stop := untilOrder(parent, signals, talk, exit)
	return ctx, func() {
		signal.Stop(signals)
		stop()
	}
}

// untilOrder is untilSignal without the system: signals delivers the orders to stop.
func untilOrder(parent context.Context, signals <-chan os.Signal, talk io.Writer, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if first.IsZero() {
				first = time.Now()
				cancel()
			} else if time.Since(first) >= signalPause {
				_, _ = io.WriteString(talk, "trunkline: stopped by a second signal\n")
				exit(cli.CodeFailed)
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		cancel()
	}
}

// minProcessors is the least GOMAXPROCS of a server that keeps its state. A thread that waits for
// the disk or for its sockets holds a processor of the Go scheduler until the scheduler takes it
// away. While none is idle, the scheduler looks for one every 20 µs, which was a seventh of the
// server's CPU on a machine of two. A loop and the writer of the log wait at the same time: one is
// idle among three.
const minProcessors = 3

// spareProcessors raises GOMAXPROCS to minProcessors. A number from the environment is the
// operator's and stays. It is called after the sizes of tables and loops were derived from the
// machine's number.
func spareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < minProcessors {
		runtime.GOMAXPROCS(minProcessors)
	}
}

// untilHangup returns what delivers SIGHUP as an order to reload, until quiet is called; orders
// that come while one waits are one. A process whose terminal has gone gets that signal too: where
// there was one at the start and is none any more, it is an order to stop.
func untilHangup(stop func()) (orders <-chan os.Signal, quiet func()) {
	signals, attended := hangups()
	out, done := make(chan os.Signal, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if attended && !hasTerminal() {
					stop()
					return
				}
				select {
				case out <- s:
				default:
				}
			}
		}
	}()
	return out, func() { close(done) }
}

// hangups holds SIGHUP for the rest of the process, which it ends no more. attended is set where
// the process was started with a terminal that it is to end with.
var hangups = sync.OnceValues(func() (signals chan os.Signal, attended bool) {
	signals = make(chan os.Signal, 1)
	attended = !signal.Ignored(syscall.SIGHUP) && hasTerminal() // nohup(1) has it ignored
	signal.Notify(signals, syscall.SIGHUP)
	return signals, attended
})

// serves reports whether the process may be a server, for which a hangup is no end.
func serves() bool { return slices.Contains(os.Args[1:], "serve") }

// execAgain replaces the process by another run of the program. A server has no moment between the
// two at which a hangup ends it.
func execAgain(args, environ []string) error {
	program, err := os.Executable()
	if err != nil || !serves() {
		return cmp.Or(err, syscall.Exec(program, args, environ))
	}
	signals, attended := hangups()
	if !attended {
		signal.Ignore(syscall.SIGHUP)
		defer signal.Notify(signals, syscall.SIGHUP)
	}
	return syscall.Exec(program, args, environ)
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
