package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/loadgen"
)

// benchTimeout is the default of bench --timeout.
const benchTimeout = 5 * time.Second

// benchFlags are the arguments of bench. Of peerFlags it uses how a server is found and trusted.
type benchFlags struct {
	peerFlags
	protocol         string
	rate             string
	conns, depth     int
	duration, warmup time.Duration
	count            int64
	methods, bodies  []string
	interval         time.Duration
	seed             uint64
	maxErrors        string

	json, hdr, svg string
	noLive         bool
}

func newBenchCmd() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [TARGET]",
		Short: "Measure a running server under a load that does not wait for it",
		Long: "Send requests when a schedule says so, whether or not earlier ones are answered, and show how long the answers took from the\n" +
			"moment each request was due. A server that stalls for a second shows it: what came due meanwhile waited, too. Any server of the\n" +
			"three protocols can be the TARGET: host:port, tls://host:port, unix:///path, or a URL for http; without it the first listener\n" +
			"of the settings is.\n\n" +
			"--rate is N requests/s, A..B for a ramp, or max, which keeps every connection at its depth. Requests that wait for a place on\n" +
			"their connection are late in the result. Bodies are JSON; in them {{seq}} is the request's number, {{conn}} its connection's,\n" +
			"{{uuid}} a new UUID, {{run}} eight digits of this run, and {{pid}} a process that the run has created for the connection and\n" +
			"terminates at its end (kernel only). For toolhost a body is the whole line; without one a tool is called with no input. On TCP\n" +
			"it authenticates with $MACHINA_API_TOKEN, if that is set.\n\n" +
			"SIGINT ends a run early, with its summary. Exit codes: 0 ok, 1 nothing was answered or too many errors, 2 usage, 5 unavailable.",
		Example: "  trunkline bench 127.0.0.1:50051 --rate 20000 --connections 64 --depth 16\n" +
			"  trunkline bench --rate 1000..50000 --duration 1m --svg ramp.svg --json ramp.json\n" +
			"  trunkline bench --method GetProcess=9 --method RecordUsage --body RecordUsage='{\"pid\":\"{{pid}}\",\"llm_calls\":1}'\n" +
			"  trunkline bench http://127.0.0.1:50080 --rate max --depth 4\n" +
			"  trunkline bench unix:///tmp/tools.sock --protocol toolhost --method AID.HASH.DIGEST.v1",
		Args: cobra.MaximumNArgs(1),
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runBench(cmd, &f, args) }
	return cmd
}

func (f *benchFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.protocol, "protocol", "", "kernel, toolhost or http (default: http for a URL, else kernel)")
	fs.StringVar(&f.rate, "rate", "1000", "requests/s: N, A..B for a ramp, or max")
	fs.IntVar(&f.conns, "connections", 8, "number of connections")
	fs.IntVar(&f.depth, "depth", 16, "most requests in flight on one connection")
	fs.DurationVar(&f.duration, "duration", 10*time.Second, "how long to measure (with --count the default is no bound)")
	fs.DurationVar(&f.warmup, "warmup", 2*time.Second, "how long to send before measuring")
	fs.Int64Var(&f.count, "count", 0, "end once so many requests are measured; 0 is no bound")
	fs.StringArrayVar(&f.methods, "method", nil, "method, tool or name, `NAME[=WEIGHT]`; repeatable (default a mix)")
	fs.StringArrayVar(&f.bodies, "body", nil, "body of a method, `NAME=JSON`, or NAME=@FILE; repeatable")
	fs.DurationVar(&f.interval, "interval", time.Second, "how often to show what happened")
	fs.DurationVar(&f.timeout, "timeout", benchTimeout, "how long one request may take, from when it was due")
	fs.StringVar(&f.maxErrors, "max-errors", "100%", "fail when more requests failed: a number, or a part like 0.1%")
	fs.Uint64Var(&f.seed, "seed", 1, "order of the mix")
	fs.StringVar(&f.json, cli.FlagJSON, "", "write the result as JSON to this `FILE`; - is stdout, all else goes to stderr then")
	fs.StringVar(&f.hdr, "hdr", "", "write the intervals as an HdrHistogram log to this `FILE`")
	fs.StringVar(&f.svg, "svg", "", "draw the result into this `FILE`")
	fs.BoolVar(&f.noLive, "no-live", false, "print a line per interval on a terminal, too")
	fs.StringVar(&f.ca, "tls-ca", "", "certificates the server's is checked against, PEM file; switches TLS on")
	fs.StringVar(&f.cert, "tls-cert", "", "certificate to show to the server, PEM file; switches TLS on")
	fs.StringVar(&f.key, "tls-key", "", "its private key, PEM file")
	config.AddSourceFlags(fs)
}

func runBench(cmd *cobra.Command, f *benchFlags, args []string) error {
	plan, err := f.plan(cmd, args)
	if err != nil {
		return err
	}
	tolerable, err := parseMaxErrors(f.maxErrors)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	// A pipe without a reader must not kill the run: it has processes to terminate.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	running, leave := context.WithCancel(ctx)
	defer leave()
	out, err := f.openOutput(cmd, plan, leave)
	if err != nil {
		return err
	}
	defer out.close()
	r, err := loadgen.Run(running, plan, out.show)
	out.endView()
	if err != nil {
		return endedBySignal(ctx, f.benchError(err))
	}
	if err := out.write(r); err != nil {
		return err
	}
	return verdict(ctx, r, tolerable)
}

// benchError gives a failure before the first measurement its exit code and a hint.
func (f *benchFlags) benchError(err error) error {
	var connect *loadgen.ConnectError
	var prepare *loadgen.PrepareError
	switch {
	case errors.Is(err, syscall.EMFILE):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "raise the limit of open files (ulimit -n) above the number of connections, or use fewer"}
	case errors.As(err, &connect):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "is the server running, does it take so many connections, and does it speak TLS? TARGET names another one"}
	case errors.As(err, &prepare) && errors.Is(err, context.DeadlineExceeded):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "does the server speak kernel IPC? --protocol names another one"}
	case errors.As(err, &prepare):
		return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: "--method and --body name requests that need no process"}
	}
	return cli.AsUsage(err, "")
}

// verdict turns a result into the exit code.
func verdict(ctx context.Context, r *loadgen.Result, tolerable tolerance) error {
	t := &r.Total
	switch {
	case ctx.Err() != nil && t.Done+t.Failed == 0:
		return nil // ended before anything could be known
	case t.Done == 0:
		return cli.Errorf(cli.CodeFailed, "no request was answered well").WithHint("the summary has the errors by their code")
	case tolerable.exceeded(t.Failed, t.Done+t.Failed):
		return cli.Errorf(cli.CodeFailed, "%d of %d requests failed, more than --max-errors %s allows", t.Failed, t.Done+t.Failed, tolerable.text)
	}
	return nil
}
