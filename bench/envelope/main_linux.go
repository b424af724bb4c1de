package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"trunkline/bench/internal/load"
)

// options are the flags.
type options struct {
	server, parts string

	rounds, outputs, reported, depth, count, loops int

	warmup, window       time.Duration
	quick, strict, peers bool
}

func parseFlags(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("envelope", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.parts, "parts", "step,report,process", "what to measure, comma separated")
	f.IntVar(&o.rounds, "rounds", 5, "rounds; medians are taken over them")
	f.IntVar(&o.outputs, "outputs", 1024, "bytes of outputs that a session's envelope begins with")
	f.IntVar(&o.reported, "reported", 200, "bytes of output in every report")
	f.IntVar(&o.depth, "depth", 32, "sessions, and reports in flight")
	f.IntVar(&o.count, "count", 10000, "processes to start, one after the other")
	f.IntVar(&o.loops, "loops", max(1, runtime.NumCPU()/2), "event loops of trunkline")
	f.DurationVar(&o.warmup, "warmup", 300*time.Millisecond, "time before each measured window")
	f.DurationVar(&o.window, "window", 2*time.Second, "measured time of each cell")
	f.BoolVar(&o.quick, "quick", false, "a look: three rounds of half a second, 500 processes")
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a goal is missed")
	f.BoolVar(&o.peers, "peer", false, "be the net/http server that trunkline is compared with; used by this program itself")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.warmup, o.window, o.count = 3, 100*time.Millisecond, 500*time.Millisecond, 500
	}
	if min(o.rounds, o.outputs, o.reported, o.depth, o.count, o.loops) < 1 || f.NArg() > 0 {
		return o, fmt.Errorf("cannot run with these flags: counts are positive")
	}
	return o, nil
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if o.peers {
		err = servePeer()
	} else {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "envelope:", err)
		os.Exit(1)
	}
}

// run measures the parts asked for and judges what they say.
func run(o options) error {
	dir, err := os.MkdirTemp("", "envelope-bench-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the binary: %w", err)
	}
	defer os.RemoveAll(dir)
	if o.server, err = load.FindBinary(o.server, "./cmd/trunkline", dir); err != nil {
		return err
	}
	fmt.Printf("%d CPUs, %s/%s, %s; %d rounds, medians\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), o.rounds)
	missed := false
	for _, name := range strings.Split(o.parts, ",") {
		part := parts[name]
		if part == nil {
			return fmt.Errorf("cannot measure %q: the parts are step, report and process", name)
		}
		goals, err := part(o)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", name, err)
		}
		for _, g := range goals {
			fmt.Println(g)
			missed = missed || !g.reached()
		}
	}
	if missed && o.strict {
		return fmt.Errorf("a goal was missed")
	}
	return nil
}

// parts are the measurements by name.
var parts = map[string]func(o options) ([]goal, error){"step": measureStep, "report": measureReport, "process": measureProcess}

// goal is a ratio that must reach a bound: how many times less, or more, than the peer.
type goal struct {
	what   string
	must   float64
	ratios []float64 // one per round
}

func (g goal) reached() bool { return median(g.ratios) >= g.must }

// String is the line with the verdict.
func (g goal) String() string {
	verdict := "MISS"
	if g.reached() {
		verdict = "pass"
	}
	return fmt.Sprintf("goal %s %s: %.1fx (must be >= %.0fx; rounds %.1f)", verdict, g.what, median(g.ratios), g.must, g.ratios)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
