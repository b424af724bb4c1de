package main

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
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
	load.Main("envelope", parseFlags, func(o options) (failed bool, err error) {
		if o.peers {
			return false, servePeer()
		}
		return false, run(o)
	})
}

// run measures the parts asked for and evaluates their figures.
func run(o options) error {
	rig, err := load.ServerRig("envelope-bench-", o.server)
	if err != nil {
		return err
	}
	defer rig.Close()
	rig.GoesWithSignal()
	fmt.Printf("%d CPUs, %s/%s, %s; %d rounds, medians\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), o.rounds)
	missed := false
	for _, name := range strings.Split(o.parts, ",") {
		part := parts[name]
		if part == nil {
			return fmt.Errorf("cannot measure %q: the parts are step, report and process", name)
		}
		goals, err := part(rig, o)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", name, err)
		}
		for _, g := range goals {
			fmt.Println(g)
			missed = missed || g.Verdict == goal.Miss
		}
	}
	if missed && o.strict {
		return fmt.Errorf("a goal was missed")
	}
	return nil
}

// parts are the measurements by name.
var parts = map[string]func(rig *load.Rig, o options) ([]asked, error){"step": measureStep, "report": measureReport, "process": measureProcess}

// asked is how many times less, or more, than the peer we have to be, and the ratios of the rounds.
type asked struct {
	goal.Goal
	ratios []float64
}

// ask evaluates the ratios of the rounds.
func ask(what string, must float64, ratios []float64) asked {
	a := asked{goal.Goal{What: what, Must: must, AtLeast: true}, ratios}
	a.Add(what, goal.Median(ratios))
	a.Evaluate()
	return a
}

// String is the line with the verdict.
func (a asked) String() string {
	return fmt.Sprintf("goal %s %s: %.1fx (must be >= %.0fx; rounds %.1f)", a.Verdict, a.What, a.Measured, a.Must, a.ratios)
}
