package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"trunkline/bench/internal/load"
)

// options are the flags.
type options struct {
	server, peers, peersBin, redis, also, json, profile string

	rounds, rows, conns, depth, loops, workers, replyBytes int

	warmup, window                      time.Duration
	quick, pin, peersOnly, strict, spin bool
}

func parseFlags(args []string) (options, error) {
	var o options
	half := max(1, runtime.NumCPU()/2)
	f := flag.NewFlagSet("wire", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.peers, "peers", "bench/peers", "source folder of the peers")
	f.StringVar(&o.peersBin, "peers-bin", "", "folder with built peers; empty builds them")
	f.StringVar(&o.redis, "redis", "auto", "GET peer: auto (redis-server if installed), redis, redcon")
	f.StringVar(&o.also, "also", "", "host:port of one more kernel IPC server, already running, compared at full depth")
	f.StringVar(&o.json, "json", "", "write all figures to this file")
	f.StringVar(&o.profile, "profile", "", "afterwards, keep CPU profiles of trunkline in this folder and print their tops")
	f.IntVar(&o.rounds, "rounds", 5, "rounds; medians are taken over them")
	f.IntVar(&o.rows, "rows", 10000, "processes in the table")
	f.IntVar(&o.conns, "conns", 64, "connections of the pipelined cells")
	f.IntVar(&o.depth, "depth", 64, "requests in flight per connection of the pipelined cells")
	f.IntVar(&o.loops, "loops", half, "event loops of trunkline and baregnet")
	f.IntVar(&o.workers, "workers", half, "goroutines of the load generator")
	f.DurationVar(&o.warmup, "warmup", 300*time.Millisecond, "time before each measured window")
	f.DurationVar(&o.window, "window", 2*time.Second, "measured time of each cell")
	f.BoolVar(&o.quick, "quick", false, "short cells: three rounds of half a second")
	f.BoolVar(&o.pin, "pin", false, "servers on one half of the CPUs, load on the other")
	f.BoolVar(&o.peersOnly, "peers-only", false, "leave trunkline out")
	f.BoolVar(&o.spin, "spin", true, "the load generator of the pipelined cells polls instead of sleeping, so that no server pays for waking it")
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a goal is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.warmup, o.window = 3, 100*time.Millisecond, 500*time.Millisecond
	}
	if o.rows < manyConns || o.rounds < 1 || o.conns < 1 || o.depth < 1 || o.loops < 1 || o.workers < 1 || f.NArg() > 0 {
		return o, fmt.Errorf("cannot run with these flags: counts are positive, -rows is at least %d", manyConns)
	}
	return o, nil
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	missed, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
	if missed && o.strict {
		os.Exit(1)
	}
}

// run starts the servers, measures every round, prints and judges.
func run(o options) (missed bool, err error) {
	if err := load.RaiseFileLimit(4 * manyConns); err != nil {
		return false, err
	}
	field, err := startField(o)
	if err != nil {
		return false, err
	}
	defer field.stop()
	var all []sample
	steps := field.steps()
	for round := range o.rounds {
		for i := range steps {
			step := steps[i]
			if round%2 == 1 {
				step = steps[len(steps)-1-i]
			}
			s, err := step.measure()
			if err != nil {
				return false, fmt.Errorf("cannot measure %v: %w", step.cell, err)
			}
			s.Cell, s.Round = step.cell, round
			all = append(all, s)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, o.rounds)
	}
	goals := judge(all, o)
	r := report{Machine: thisMachine(), Settings: settingsOf(o), Cells: summarize(all), Goals: goals}
	r.print(os.Stdout)
	if o.json != "" {
		if err := r.writeJSON(o.json); err != nil {
			return false, err
		}
	}
	if o.profile != "" && !o.peersOnly {
		if err := field.profile(o.profile); err != nil {
			return false, err
		}
	}
	for _, g := range goals {
		missed = missed || g.Verdict == "MISS"
	}
	return missed, nil
}
