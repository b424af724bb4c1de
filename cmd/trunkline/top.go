package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/topview"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
)

// leastInterval is how often top asks at most: a question walks over counters of all protocols.
const leastInterval = 100 * time.Millisecond

// topFlags are the arguments of top.
type topFlags struct {
	adminQuery
	interval time.Duration
	count    int
	sort     string
}

func newTopCmd() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what a running server does",
		Long: "Show rates, errors and latencies of each method, connections, the ready queue,\n" +
			"dropped events and how far the store is behind, over and over. Keys are at the\n" +
			"bottom. With --json, and where there is no terminal, each interval is a line of\n" +
			"JSON; a server that does not answer ends that with exit code 5.\n\n" +
			"Rates, means, p50, p99 and p99.9 are of the interval; count and errors are\n" +
			"since the start of the server.",
		Example: "  trunkline top\n  trunkline top --interval 5s --sort p99\n  trunkline top --json --count 3 | jq .requests_per_second",
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.DurationVar(&f.interval, "interval", time.Second, "pause between two looks, no less than "+leastInterval.String())
	fs.IntVarP(&f.count, "count", "n", 0, "end after this many intervals; 0 goes on")
	fs.StringVar(&f.sort, "sort", string(topview.ByRate), "sort methods by rate, errors, mean, p99 or name")
	_ = cmd.RegisterFlagCompletionFunc("sort", oneOf(topview.Orders()...)) // fails for an unknown flag only
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runTop(cmd, &f) }
	return cmd
}

func runTop(cmd *cobra.Command, f *topFlags) error {
	order, err := topview.ParseOrder(f.sort)
	switch {
	case err != nil:
		return cli.AsUsage(err, "")
	case f.count < 0:
		return cli.Errorf(cli.CodeUsage, "cannot use --count %d: it must not be negative", f.count)
	case f.interval < leastInterval:
		return cli.Errorf(cli.CodeUsage, "cannot use --interval %s: want %s or more", f.interval, leastInterval)
	}
	if err := f.find(cmd); err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	in, out := cmd.InOrStdin(), cmd.OutOrStdout()
	if cli.JSON(cmd) || !cli.IsTerminal(in) || !cli.IsTerminal(out) || os.Getenv("TERM") == "dumb" {
		return endedBySignal(ctx, f.lines(ctx, cmd, order))
	}
	return topview.Run(ctx, topview.Options{
		Target: f.addr, Ask: f.overview, Interval: f.interval, Count: f.count, Order: order,
		Color: os.Getenv("NO_COLOR") == "", In: in, Out: out,
	})
}

// overview asks for what a look at the server shows.
func (f *topFlags) overview(ctx context.Context) (*obs.Overview, error) {
	o := new(obs.Overview)
	return o, f.ask(ctx, "/overview", o)
}

// lines prints a sample per interval.
func (f *topFlags) lines(ctx context.Context, cmd *cobra.Command, order topview.Order) error {
	before, err := f.overview(ctx)
	for n := 0; err == nil && (n < f.count || f.count == 0) && connection.Pause(ctx, f.interval); n++ {
		var after *obs.Overview
		if after, err = f.overview(ctx); err != nil {
			break
		}
		s := topview.Between(before, after)
		s.Sort(order)
		text, failed := json.Marshal(s)
		if failed != nil {
			return failed
		}
		if err := writeLine(cmd.OutOrStdout(), text); err != nil {
			return err
		}
		before = after
	}
	return err
}
