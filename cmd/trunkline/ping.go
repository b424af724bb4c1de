package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/connection"
	"trunkline/handlers/ipc/ipcclient"
)

// maxPings bounds a run.
const maxPings = 1_000_000

// pingFlags are the arguments of ping.
type pingFlags struct {
	peerFlags
	adminFlags
	count    int
	interval time.Duration
}

func newPingCmd() *cobra.Command {
	var f pingFlags
	cmd := &cobra.Command{
		Use:     "ping [URL]",
		Aliases: []string{"rtt"},
		Short:   "Measure round trips to a running server",
		Long: "Send one cheap request after the other over one connection, and show how long\n" +
			"the answers took. The request is kernel.Ping at --addr; with --admin it is\n" +
			"/healthz of the admin endpoint, and with a URL it is a GET of that.\n\n" +
			"An answer of HTTP counts whatever its status is. The first round trip over HTTP\n" +
			"includes connecting. Exit code 5: a round trip failed, which ends the run.",
		Example: "  trunkline ping --count 1000 --interval 0s\n  trunkline ping --admin 127.0.0.1:50090\n  trunkline ping http://127.0.0.1:50080/ --json",
		Args:    cobra.MaximumNArgs(1),
	}
	f.add(cmd, statusTimeout)
	cmd.Flags().StringVar(&f.admin, "admin", "", "ask this admin endpoint, host:port")
	cmd.Flags().Lookup("timeout").Usage = "how long one round trip may take"
	cmd.Flags().IntVarP(&f.count, "count", "n", 10, "round trips")
	cmd.Flags().DurationVar(&f.interval, "interval", 100*time.Millisecond, "pause between two of them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runPing(cmd, &f, args) }
	return cmd
}

// check checks what no other verb has.
func (f *pingFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.count < 1 || f.count > maxPings:
		return cli.Errorf(cli.CodeUsage, "cannot use --count %d: want 1 to %d", f.count, maxPings)
	case f.interval < 0:
		return cli.Errorf(cli.CodeUsage, "cannot use --interval %s: it must not be negative", f.interval)
	case len(args) > 0 && (cmd.Flags().Changed("addr") || cmd.Flags().Changed("admin")),
		cmd.Flags().Changed("addr") && cmd.Flags().Changed("admin"):
		return cli.Errorf(cli.CodeUsage, "cannot ping two servers at a time").WithHint("use one of --addr, --admin and URL")
	case len(args) > 0 && !strings.HasPrefix(args[0], "http://") && !strings.HasPrefix(args[0], "https://"):
		return cli.Errorf(cli.CodeUsage, "cannot ping %q: want a URL, http://host:port", args[0]).WithHint("--addr names a kernel endpoint, --admin an admin endpoint")
	}
	return f.checkTimeout()
}

// pinger makes one round trip.
type pinger struct {
	target string
	trip   func(context.Context) error
	close  func()
}

// open connects, or prepares to.
func (f *pingFlags) open(cmd *cobra.Command, args []string) (*pinger, error) {
	switch {
	case len(args) > 0:
		return f.overHTTP(args[0])
	case cmd.Flags().Changed("admin"):
		addr, _, err := f.adminFlags.where(cmd)
		if err == nil && addr == "" {
			err = cli.Errorf(cli.CodeUsage, "cannot ping an empty address").WithHint("--admin is an address like 127.0.0.1:50090")
		}
		if err != nil {
			return nil, err
		}
		return f.overHTTP("http://" + addr + "/healthz")
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	conn, err := f.dial(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return &pinger{
		target: f.target,
		trip: func(ctx context.Context) error {
			_, err := conn.Call(ctx, "kernel", "Ping", nil)
			if said := (*ipcclient.Error)(nil); errors.As(err, &said) && strings.HasPrefix(said.Message, "Unknown ") {
				return nil // a server without the method answers as fast
			}
			return err
		},
		close: func() { _ = conn.Close() },
	}, nil
}

// overHTTP pings by GETs over one connection.
func (f *pingFlags) overHTTP(url string) (*pinger, error) {
	secure, err := f.tls()
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{TLSClientConfig: secure, MaxConnsPerHost: 1}
	f.target = url
	return &pinger{
		target: url,
		trip: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return cli.AsUsage(err, "")
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				return cli.Errorf(cli.CodeUnavailable, "cannot reach %s: %w", url, err).WithHint("is the server running?")
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAdminBody))
			return err
		},
		close: tr.CloseIdleConnections,
	}, nil
}

// pingResult is the document of ping --json. Latencies are in seconds; without a round trip they
// are 0.
type pingResult struct {
	Target string  `json:"target"`
	Sent   int     `json:"sent"`
	OK     int     `json:"ok"`
	Min    float64 `json:"min_seconds"`
	P50    float64 `json:"p50_seconds"`
	P99    float64 `json:"p99_seconds"`
	Max    float64 `json:"max_seconds"`
}

func runPing(cmd *cobra.Command, f *pingFlags, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	p, err := f.open(cmd, args)
	if err != nil {
		return err
	}
	defer p.close()
	r, failed := f.ping(ctx, p)
	if ctx.Err() != nil && r.OK > 0 {
		failed = nil // it was ended early, which is no failure
	}
	if r.OK > 0 || cli.JSON(cmd) {
		err = cli.Show(cmd, r, r.rows())
	}
	if failed = f.explain(failed); failed != nil {
		failed = fmt.Errorf("round trip %d of %d failed: %w", r.Sent, f.count, failed)
		if known := (*cli.Error)(nil); !errors.As(failed, &known) {
			failed = &cli.Error{Code: cli.CodeUnavailable, Err: failed}
		}
	}
	return errors.Join(err, failed)
}

// ping makes the round trips until one fails or ctx ends.
func (f *pingFlags) ping(ctx context.Context, p *pinger) (r pingResult, err error) {
	r.Target = p.target
	var took []time.Duration
	for r.Sent < f.count && err == nil {
		if r.Sent > 0 && !connection.Pause(ctx, f.interval) {
			break
		}
		r.Sent++
		limited, cancel := context.WithTimeout(ctx, f.timeout)
		begun := time.Now()
		if err = p.trip(limited); err == nil {
			took = append(took, time.Since(begun))
		}
		cancel()
	}
	if r.OK = len(took); r.OK > 0 {
		slices.Sort(took)
		at := func(percent int) float64 { return took[max((r.OK*percent+99)/100-1, 0)].Seconds() }
		r.Min, r.P50, r.P99, r.Max = at(0), at(50), at(99), at(100)
	}
	return r, err
}

// rows is the result for people.
func (r *pingResult) rows() [][]string {
	text := func(secs float64) string { return benchview.LatencyText(int64(secs * 1e9)) }
	return [][]string{
		{"TARGET", "ROUND TRIPS", "MIN", "P50", "P99", "MAX"},
		{cli.Visible(r.Target), fmt.Sprintf("%d of %d", r.OK, r.Sent), text(r.Min), text(r.P50), text(r.P99), text(r.Max)},
	}
}
