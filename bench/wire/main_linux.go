package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"trunkline/bench/internal/goal"
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

func main() { load.Main("wire", parseFlags, run) }

// run starts the servers, measures every round, prints and judges.
func run(o options) (failed bool, err error) {
	if err := load.RaiseFileLimit(4 * manyConns); err != nil {
		return false, err
	}
	field, err := startField(o)
	if err != nil {
		return false, err
	}
	defer field.Close()
	all, err := goal.Rounds(o.rounds, field.steps(), os.Stderr)
	if err != nil {
		return false, err
	}
	r := reportOf(all, o)
	r.print(os.Stdout)
	if err := goal.WriteJSON(o.json, r); err != nil {
		return false, err
	}
	if o.profile != "" && !o.peersOnly {
		if err := field.profile(o.profile); err != nil {
			return false, err
		}
	}
	return o.strict && goal.Missed(r.Goals), nil
}
