package main

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
)

// benchTimeout is the default of bench --timeout.
const benchTimeout = 5 * time.Second

// benchFlags are the arguments of bench. Of peerFlags it uses how a server is found and trusted.
type benchFlags struct {
	peerFlags
	asked           loadgen.Plan // without what other flags are parsed for
	protocol        string
	rate            string
	methods, bodies []string
	maxErrors       string

	jsonFile, hdr, svg string
	noLive             bool
}

func newBenchCmd() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [TARGET]",
		Short: "Measure a running server under a load that does not wait for it",
		Long: "Send requests when a schedule says so, whether or not earlier ones are answered, and show how long the answers took from the\n" +
			"moment each request was due. A server that stalls for a second shows it: what came due meanwhile waited, too. Any server of the\n" +
			"five protocols can be the TARGET: host:port, tls://host:port, unix:///path, or a URL for http; without it the first listener\n" +
			"of the settings is.\n\n" +
			"--rate is N requests/s, A..B for a ramp, or max, which keeps every connection at its depth. Requests that wait for a place on\n" +
			"their connection are late in the result. Bodies are JSON; in them {{seq}} is the request's number, {{conn}} its connection's,\n" +
			"{{uuid}} a new UUID, {{run}} eight digits of this run, {{pid}} a process that the run has created for the connection and terminates\n" +
			"at its end (kernel only), {{thread}} a thread that it has created and closes (threads only), and {{root}} and {{project}} the folder\n" +
			"and the project_id of a project that it has made on this machine, opened, and removes (exacta only). For toolhost a body is the whole\n" +
			"line; without one a tool is called with no input. On TCP it authenticates with $MACHINA_API_TOKEN, if that is set. For threads a\n" +
			"body is the params of a method; " + envThreadsTokenFile + " is a file with the token of a coordinator or an operator, or\n" +
			envThreadsToken + " the token itself. For exacta a body is the payload of a command; that an idle project refuses one\n" +
			"because of its state (ST-001) is a good answer. On TCP the token is that of exacta.auth_token_file.\n\n" +
			"Progress goes to stderr and the summary to stdout; with --json the result is JSON on stdout, and the summary goes to stderr.\n" +
			"SIGINT ends a run early, with its summary. Exit codes: 0 ok, 1 nothing was answered or too many errors, 2 usage, 5 unavailable.",
		Example: "  trunkline bench 127.0.0.1:50051 --rate 20000 --connections 64 --depth 16\n" +
			"  trunkline bench --rate 1000..50000 --duration 1m --svg ramp.svg --json-file ramp.json\n" +
			"  trunkline bench --method GetProcess=9 --method RecordUsage --body RecordUsage='{\"pid\":\"{{pid}}\",\"llm_calls\":1}'\n" +
			"  trunkline bench http://127.0.0.1:50080 --rate max --depth 4\n" +
			"  trunkline bench unix:///tmp/tools.sock --protocol toolhost --method AID.HASH.DIGEST.v1\n" +
			"  THREADS_TOKEN_FILE=token trunkline bench --protocol threads --rate max --connections 64 --threads 1 --method post_message",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && cli.JSON(cmd) {
				return cli.Errorf(cli.CodeUsage, "cannot use argument %q", args[1]).
					WithHint("--json takes no file, --json-file does")
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runBench(cmd, &f, args) }
	return cmd
}

func (f *benchFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.protocol, "protocol", "", "kernel, toolhost, threads, exacta or http (default: http for a URL, else kernel)")
	fs.StringVar(&f.rate, "rate", "1000", "requests/s: N, A..B for a ramp, or max")
	fs.IntVar(&f.asked.Conns, "connections", 8, "number of connections")
	fs.IntVar(&f.asked.Depth, "depth", 16, "most requests in flight on one connection")
	fs.IntVar(&f.asked.Watch.Subscriptions, "watchers", 0, "subscriptions to those threads while the load lasts (threads only)")
	fs.IntVar(&f.asked.Watch.PerConn, "watchers-per-connection", 1, "subscriptions on one connection, at most 1,024")
	fs.IntVar(&f.asked.Threads, "threads", 0, "threads that the connections share (threads only); 0 is one for each connection")
	fs.DurationVar(&f.asked.Duration, "duration", 10*time.Second, "how long to measure (with --count the default is no bound)")
	fs.DurationVar(&f.asked.Warmup, "warmup", 2*time.Second, "how long to send before measuring")
	fs.Int64Var(&f.asked.Count, "count", 0, "end once so many requests are measured; 0 is no bound")
	fs.StringArrayVar(&f.methods, "method", nil, "method, tool or name, `NAME[=WEIGHT]`; repeatable (default a mix)")
	fs.StringArrayVar(&f.bodies, "body", nil, "body of a method, `NAME=JSON`, or NAME=@FILE; repeatable")
	fs.DurationVar(&f.asked.Interval, "interval", time.Second, "how often to show what happened")
	fs.DurationVar(&f.asked.Timeout, "timeout", benchTimeout, "how long one request may take, from when it was due")
	fs.StringVar(&f.maxErrors, "max-errors", "100%", "fail when more requests failed: a number, or a part like 0.1%")
	fs.BoolVar(&f.asked.Resend, "resend", false, "send requests again that a draining server refuses, or whose connection ends, on a new one (kernel only)")
	fs.Uint64Var(&f.asked.Seed, "seed", 1, "order of the mix")
	fs.StringVar(&f.jsonFile, "json-file", "", "write the result as JSON to this `FILE`")
	fs.StringVar(&f.hdr, "hdr", "", "write the intervals as an HdrHistogram log to this `FILE`")
	fs.StringVar(&f.svg, "svg", "", "draw the result into this `FILE`")
	fs.BoolVar(&f.noLive, "no-live", false, "print a line per interval on a terminal, too")
	f.addTrust(fs)
}

func runBench(cmd *cobra.Command, f *benchFlags, args []string) error {
	plan, err := f.plan(cmd, args)
	if err != nil {
		return err
	}
	tooMany, err := parseMaxErrors(f.maxErrors)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
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
	return verdict(ctx, r, tooMany)
}

// benchError gives a failure before the first measurement its exit code and a hint.
func (f *benchFlags) benchError(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "raise the limit of open files (ulimit -n) above the number of connections, or use fewer"}
	case errors.Is(err, loadgen.ErrConnect):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "is the server running, does it take so many connections, and does it speak TLS? TARGET names another one"}
	case errors.Is(err, loadgen.ErrPrepare) && errors.Is(err, context.DeadlineExceeded):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "does the server speak this protocol? --protocol names another one"}
	case errors.Is(err, loadgen.ErrPrepare):
		return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: "--method and --body name requests that need no process, no thread and no project"}
	}
	return cli.AsUsage(err, "")
}

// verdict turns a result into the exit code.
func verdict(ctx context.Context, r *loadgen.Result, tooMany func(failed, all int64) error) error {
	t := &r.Total
	switch {
	case ctx.Err() != nil && t.Done+t.Failed == 0:
		return nil // ended before anything could be known
	case t.Done == 0:
		return cli.Errorf(cli.CodeFailed, "no request was answered well").WithHint("the summary has the errors by their code")
	}
	return tooMany(t.Failed, t.Done+t.Failed)
}

// plan makes the plan of the flags; all its errors are about usage.
func (f *benchFlags) plan(cmd *cobra.Command, args []string) (loadgen.Plan, error) {
	p := f.asked
	var err error
	if p.Target, err = f.benchTarget(cmd, args); err != nil {
		return p, err
	}
	if p.Schedule, err = parseRate(f.rate); err != nil {
		return p, err
	}
	if p.Mix, err = f.mix(&p); err != nil {
		return p, err
	}
	if p.Count > 0 && !cmd.Flags().Changed("duration") {
		p.OnlyCount()
	}
	return p, cli.AsUsage(p.Check(), helpHint(cmd))
}

// benchTarget finds the server: the argument, or where one with the same settings would listen.
func (f *benchFlags) benchTarget(cmd *cobra.Command, args []string) (t loadgen.Target, err error) {
	if t.Protocol = f.protocol; t.Protocol == "" {
		t.Protocol = loadgen.ProtocolKernel
		if len(args) > 0 && (strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://")) {
			t.Protocol = loadgen.ProtocolHTTP
		}
	}
	if !slices.Contains(loadgen.Protocols(), t.Protocol) {
		return t, cli.Errorf(cli.CodeUsage, "cannot use --protocol %q: want one of %s", t.Protocol, strings.Join(loadgen.Protocols(), ", "))
	}
	if len(args) > 0 {
		t.Addr = args[0]
	} else if t.Addr, err = f.settingsTarget(cmd, t.Protocol); err != nil {
		return t, err
	}
	if t.TLS, err = f.tls(); err != nil {
		return t, err
	}
	network, _, _, err := t.Place()
	if err != nil {
		return t, cli.AsUsage(err, "")
	}
	f.target = t.Addr
	t.Token, err = benchToken(cmd, t.Protocol, network == "unix")
	return t, cli.AsUsage(err, "")
}

// benchToken is what connections authenticate with, "" for none.
func benchToken(cmd *cobra.Command, protocol string, local bool) (string, error) {
	switch {
	case protocol == loadgen.ProtocolThreads:
		token, err := threadsToken("")
		if err != nil {
			return "", err
		}
		return token()
	case protocol == loadgen.ProtocolToolhost && !local:
		return os.Getenv("MACHINA_API_TOKEN"), nil
	case protocol == loadgen.ProtocolExacta && !local:
		c, err := loadConfig(cmd)
		if err != nil {
			return "", err
		}
		return c.Exacta.Token()
	}
	return "", nil
}

// settingsTarget is the address of the first listener that the settings give a protocol.
func (f *benchFlags) settingsTarget(cmd *cobra.Command, protocol string) (string, error) {
	if protocol == loadgen.ProtocolKernel {
		addr, err := f.server(cmd)
		return addr, err
	}
	c, err := loadConfig(cmd)
	if err != nil {
		return "", err
	}
	addrs, scheme := c.HTTP.ListenAddr, "http://"
	switch protocol {
	case loadgen.ProtocolToolhost:
		addrs, scheme = c.Toolhost.ListenAddr, ""
	case loadgen.ProtocolThreads:
		addrs, scheme = c.Threads.LinesAddr, ""
	case loadgen.ProtocolExacta:
		addrs, scheme = c.Exacta.ListenAddr, ""
	}
	if len(addrs) == 0 || chosenLater(addrs[0]) || scheme != "" && strings.Contains(addrs[0], "://") {
		return "", cli.Errorf(cli.CodeUsage, "cannot find a server: no setting says where one speaks %s", protocol).WithHint("name it: trunkline bench TARGET --protocol " + protocol)
	}
	return scheme + addrs[0], nil
}

// parseRate reads --rate.
func parseRate(text string) (s loadgen.Schedule, err error) {
	bad := cli.Errorf(cli.CodeUsage, "cannot use --rate %q: want requests/s like 1000, a ramp like 100..5000, or max", text)
	if text == "max" {
		return loadgen.Schedule{Kind: loadgen.Max}, nil
	}
	from, to, ramp := strings.Cut(text, "..")
	if !ramp {
		to = from
	}
	if s.From, err = parseNumber(from); err != nil {
		return s, bad
	}
	if s.To, err = parseNumber(to); err != nil {
		return s, bad
	}
	if ramp {
		s.Kind = loadgen.Ramp
	}
	return s, nil
}

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && (n < 0 || math.IsNaN(n) || math.IsInf(n, 0)) {
		err = strconv.ErrRange
	}
	return n, err
}

// mix reads --method and --body. A body may be given for a method of the default mix, too.
func (f *benchFlags) mix(p *loadgen.Plan) ([]loadgen.Share, error) {
	mix := loadgen.DefaultMix(p.Target.Protocol)
	if len(f.methods) > 0 {
		mix = nil
	}
	for _, text := range f.methods {
		name, weight, given := strings.Cut(text, "=")
		s := loadgen.Share{Name: name, Weight: 1}
		if given {
			var err error
			if s.Weight, err = strconv.Atoi(weight); err != nil {
				return nil, cli.Errorf(cli.CodeUsage, "cannot use --method %q: want NAME or NAME=WEIGHT", text)
			}
		}
		mix = append(mix, s)
	}
	for _, text := range f.bodies {
		if err := addBody(mix, text); err != nil {
			return nil, err
		}
	}
	return mix, nil
}

func addBody(mix []loadgen.Share, text string) error {
	name, body, given := strings.Cut(text, "=")
	if !given {
		return cli.Errorf(cli.CodeUsage, "cannot use --body %q: want NAME=JSON", text)
	}
	if path, isFile := strings.CutPrefix(body, "@"); isFile {
		data, err := os.ReadFile(path)
		if err != nil {
			return cli.Errorf(cli.CodeUsage, "cannot use --body %s: %w", name, err)
		}
		body = string(data)
	}
	for i := range mix {
		if mix[i].Name == name || mix[i].Name == "kernel."+name || "kernel."+mix[i].Name == name {
			mix[i].Body = []byte(body)
			return nil
		}
	}
	return cli.Errorf(cli.CodeUsage, "cannot use --body %s: no --method has that name", name)
}

// parseMaxErrors reads --max-errors, and returns what is wrong with a number of failures.
func parseMaxErrors(text string) (tooMany func(failed, all int64) error, err error) {
	number, part := strings.CutSuffix(text, "%")
	most, err := parseNumber(number)
	if err != nil || part && most > 100 || !part && most != math.Trunc(most) {
		return nil, cli.Errorf(cli.CodeUsage, "cannot use --max-errors %q: want a number or a part like 0.1%%", text)
	}
	return func(failed, all int64) error {
		if part && float64(failed)*100 <= most*float64(all) || !part && float64(failed) <= most {
			return nil
		}
		return cli.Errorf(cli.CodeFailed, "%d of %d requests failed, more than --max-errors %s allows", failed, all, text)
	}, nil
}
